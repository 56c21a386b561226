"""Former names of functions in `rankwright.losses.base`."""

from rankwright.losses.base import load_loss_state as put_back
from rankwright.losses.base import loss_state as memory_of

__all__ = ["memory_of", "put_back"]
