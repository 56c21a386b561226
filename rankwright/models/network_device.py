"""What a network does on a GPU: passes through its layers, and features that come in time.

`LayerPasses` computes scores and gradients of layers without dropout or list context, and does by
itself what torch's record of operations would do: the activation is applied while the product is
written, gradients go to the same places in each step, and in mixed precision nothing but the
weights is converted. With h_0 the features, h_l = a(h_{l-1} W_l + b_l), s = h_L w + b and g the
gradient in the scores,

    G_L = (g w') * a'(h_L),      G_{l-1} = (G_l W_l') * a'(h_{l-1})                             (1)
    dJ/dW_l = h_{l-1}' G_l,      dJ/db_l = 1' G_l,      dJ/dw = h_L' g,      dJ/db = 1' g       (2)

where a' is known from a's value. In mixed precision h and G are bfloat16; s is not, and neither are
the results of (2): w goes in as two numbers of bfloat16, which hold 16 bits of it together.

`DeviceFeatures` has the scaled features of chunks of documents there: all at once where they fit,
and otherwise each when its turn comes. The next chunk is then read into a pinned buffer by a thread
and copied on a stream of its own while the GPU works on the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from rankwright.core.parallel import map_ranges, row_ranges
from rankwright.core.types import I64, AnyArray, FloatMatrix

_ALIGNED = 8  # rows of a product that the units for products take as they are
_ROWS = 4_096  # that a thread gathers at once


class LayerPasses:
    """Scores (forward) and gradients (backward) of layers.

    Parameters
    ----------
    torch
    activation
        Its name.
    mixed, tf32
        Whether products are in bfloat16, or in TF32.
    """

    def __init__(self, torch: Any, activation: str, *, mixed: bool, tf32: bool = False) -> None:
        self._torch, self._activation, self._mixed = torch, activation, mixed
        self._sums_by_products = mixed or tf32
        self._typed_products = "dtype" in torch.ops.aten.mm.overloads()

    def forward(self, weights: Sequence[Any], x: Any) -> tuple[list[Any], Any]:
        """Return the features and h of each hidden layer, and the scores."""
        torch = self._torch
        hidden = [x]
        for weight, bias in self._pairs(weights)[:-1]:
            weight, bias = self._narrow(weight), self._narrow(bias)
            if self._activation == "relu":  # written by the product itself
                hidden.append(torch._addmm_activation(bias, hidden[-1], weight))
            elif self._activation == "elu":
                sums = torch.addmm(bias, hidden[-1], weight)
                hidden.append(torch.nn.functional.elu(sums, inplace=True))
            else:
                sums = torch.addmm(bias, hidden[-1], weight)
                hidden.append(getattr(torch, f"{self._activation}_")(sums))
        weight, bias = self._pairs(weights)[-1]
        if not self._mixed:
            return hidden, torch.addmm(bias, hidden[-1], weight)[:, 0]
        return hidden, self._product(hidden[-1], self._halves(weight[:, 0])).sum(1) + bias

    def backward(self, weights: Sequence[Any], hidden: list[Any], g: Any, out: list[Any]) -> None:
        """Write (2) to ``out``, which has a place for each weight, or None."""
        torch = self._torch
        *layers, (weight, _) = self._pairs(weights)
        own, own_bias = out[2 * len(layers)], out[2 * len(layers) + 1]
        if self._mixed:
            halves = self._halves(g)
            own.copy_(self._product(hidden[-1].T, halves).sum(1, keepdim=True))
        else:
            torch.mm(hidden[-1].T, g[:, None], out=own)
        if own_bias is not None:
            own_bias.copy_(g.sum())
        if not layers:
            return
        if self._mixed:
            back = halves @ self._narrow(weight).T.expand(2, -1)
        else:
            back = g[:, None] * weight.T
        for number in range(len(layers) - 1, -1, -1):
            self._through_activation(back, hidden[number + 1])  # (1)
            self._sum_rows(back, out[2 * number + 1])
            self._product(hidden[number].T, back, out=out[2 * number])  # (2)
            if number:
                back = back @ self._narrow(layers[number][0]).T

    @staticmethod
    def _pairs(weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        return [(weights[k], weights[k + 1]) for k in range(0, len(weights), 2)]

    def _narrow(self, array: Any) -> Any:
        return array.to(self._torch.bfloat16) if self._mixed else array

    def _halves(self, column: Any) -> Any:
        """Return a column of numbers as two of bfloat16 that add up to it, to 16 bits."""
        high = self._narrow(column)
        return self._torch.stack([high, self._narrow(column - high)], 1)

    def _product(self, a: Any, b: Any, out: Any = None) -> Any:
        """Return a b in single precision, or double where these are."""
        torch = self._torch
        if not self._mixed:
            return torch.mm(a, b, out=out)
        if not self._typed_products:  # torch before 2.8
            wide = torch.mm(a, b).float()
            return wide if out is None else out.copy_(wide)
        if out is None:
            return torch.mm(a, b, out_dtype=torch.float32)
        return torch.mm(a, b, out_dtype=torch.float32, out=out)

    def _sum_rows(self, back: Any, out: Any) -> None:
        """Write the sum of the rows; by a product, which reads faster, in low precision."""
        torch = self._torch
        if not self._sums_by_products:
            torch.sum(back, 0, out=out)
            return
        ones = torch.ones((_ALIGNED, len(back)), dtype=back.dtype, device=back.device)
        out.copy_(self._product(ones, back)[0])

    def _through_activation(self, back: Any, h: Any) -> None:
        """Multiply by a'(h), in place."""
        ops = self._torch.ops.aten
        if self._activation == "relu":
            ops.threshold_backward.grad_input(back, h, 0.0, grad_input=back)
        elif self._activation == "sigmoid":
            ops.sigmoid_backward.grad_input(back, h, grad_input=back)
        elif self._activation == "tanh":
            ops.tanh_backward.grad_input(back, h, grad_input=back)
        else:
            ops.elu_backward.grad_input(back, 1.0, 1.0, 1.0, True, h, grad_input=back)


class DeviceFeatures:
    """Scaled features of chunks of documents on the device.

    Parameters
    ----------
    torch, device
    X
        All features.
    rows
        Which rows of them each chunk has.
    scaled
        Makes a tensor of features on the device fit for the network.
    resident
        Whether all chunks stay there.
    n_jobs
        Threads that gather rows.
    """

    def __init__(
        self,
        torch: Any,
        device: str,
        X: FloatMatrix,
        rows: Sequence[I64 | slice],
        scaled: Callable[[Any], Any],
        *,
        resident: bool,
        n_jobs: int | None,
    ) -> None:
        self._torch, self._device, self._X, self._rows = torch, device, X, rows
        self._scaled, self._n_jobs = scaled, n_jobs
        self._kept: list[Any] | None = None
        if resident:
            self._kept = [scaled(torch.as_tensor(self._gathered(chunk)).to(device))
                          for chunk in range(len(rows))]  # fmt: skip
            return
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="rankwright-features")
        self._apart = torch.cuda.Stream() if device == "cuda" else None
        self._buffers: list[Any] = [None, None]  # pinned, and used by turns
        self._copied: list[Any] = [None, None]  # when the GPU has all of a buffer
        self._turn, self._coming = 0, list[int]()
        self._read: tuple[int, Future[Any]] | None = None

    @property
    def resident(self) -> bool:
        """Whether all features are on the device."""
        return self._kept is not None

    def expect(self, chunks: Sequence[int]) -> None:
        """Say which chunks are asked for next, in this order, so that they come in time."""
        if self._kept is None:
            self._coming = list(chunks)

    def __getitem__(self, chunk: int) -> Any:
        """Return the scaled features of a chunk."""
        if self._kept is not None:
            return self._kept[chunk]
        if self._coming and self._coming[0] == chunk:
            self._coming.pop(0)
        made = self._send(self._finished(chunk))
        if self._coming:
            self._read = self._coming[0], self._reader.submit(self._fill, self._coming[0])
        return self._scaled(made)

    def close(self) -> None:
        """End the thread that reads ahead."""
        if self._kept is None:
            self._coming = []
            self._reader.shutdown(wait=True)

    def _finished(self, chunk: int) -> Any:
        """Return the features of a chunk in the host's memory: those read ahead, if it is they."""
        ahead, self._read = self._read, None
        if ahead is not None:
            found = ahead[1].result()
            if ahead[0] == chunk:
                return found
        return self._fill(chunk)

    def _fill(self, chunk: int) -> Any:
        """Read a chunk into the next buffer, once the GPU has what is in it."""
        torch, turn = self._torch, self._turn
        self._turn = 1 - turn
        if self._apart is None:
            return torch.as_tensor(self._gathered(chunk))
        if self._copied[turn] is not None:
            self._copied[turn].synchronize()
        n, cells = self._length(chunk), self._length(chunk) * self._X.shape[1]
        if self._buffers[turn] is None or len(self._buffers[turn]) < cells:
            like = torch.from_numpy(np.empty(0, self._X.dtype)).dtype
            self._buffers[turn] = torch.empty(cells, dtype=like, pin_memory=True)
        part = self._buffers[turn][:cells].view(n, self._X.shape[1])
        self._gathered(chunk, out=part.numpy())
        return part

    def _send(self, part: Any) -> Any:
        """Copy to the GPU on a stream of its own; what comes next on torch's waits for it."""
        if self._apart is None:
            return part.clone()
        torch, turn = self._torch, 1 - self._turn
        here = torch.cuda.current_stream()
        with torch.cuda.stream(self._apart):
            there = part.to(self._device, non_blocking=True)
            self._copied[turn] = torch.cuda.Event()
            self._copied[turn].record()
        here.wait_stream(self._apart)
        there.record_stream(here)
        return there

    def _length(self, chunk: int) -> int:
        rows = self._rows[chunk]
        return rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    def _gathered(self, chunk: int, out: AnyArray | None = None) -> AnyArray:
        """Return the features of a chunk, in ``out`` where given."""
        rows, X = self._rows[chunk], self._X
        if not isinstance(X, np.ndarray):
            dense: AnyArray = X[rows].toarray(out=out)
            return dense
        found = np.empty((self._length(chunk), X.shape[1]), X.dtype) if out is None else out

        def gather(lo: int, hi: int) -> None:
            if isinstance(rows, slice):
                found[lo:hi] = X[rows.start + lo : rows.start + hi]
            else:
                np.take(X, rows[lo:hi], axis=0, out=found[lo:hi], mode="clip")

        map_ranges(gather, row_ranges(len(found), _ROWS), n_jobs=self._n_jobs)
        return found
