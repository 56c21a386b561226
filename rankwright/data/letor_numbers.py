"""Numbers in text, read exactly as ``float`` reads them and written as briefly as ``repr`` does.

A decimal w · 10^q with integer w becomes the nearest double, ties to even:

    (1)  w <= 2^53 and |q| <= 22: both are doubles, and one operation rounds once  [clinger1990]
    (2)  w < 2^64: the product of w and a 128-bit approximation of 5^q decides     [lemire2021]

The shortest decimal that is read as x is found the other way round:

    (3)  x · 10^k has 17 digits before the point; less than half the gap between doubles away from
         it, the nearest number of 15, 16 or 17 digits is taken                    [adams2018]

What none of them decides (long numbers that are nearly halfway between two doubles, numbers so
small that digits are lost) is left to Python. Loops over text stop at a newline, which must be
there.
"""

from __future__ import annotations

import math

import numpy as np

from rankwright.core.jit import kernel

_PLUS, _MINUS, _POINT, _ZERO, _BIG_E, _SMALL_E = 43, 45, 46, 48, 69, 101
_NULL, _SMALL_NULL = np.frombuffer(b"NULL", np.uint8), np.frombuffer(b"null", np.uint8)
_NAN, _SMALL_NAN = np.frombuffer(b"NaN", np.uint8), np.frombuffer(b"nan", np.uint8)
_NA = np.frombuffer(b"NA", np.uint8)

MAX_DIGITS = 19  # of an integer below 2^64
_MAX_EXPONENT = 1 << 40  # far more than any digits can make up for
_EXACT = np.uint64(1 << 53)
_TEN = 10.0 ** np.arange(23)
_MIN_POWER, _MAX_POWER = -342, 308
_TENS = 10 ** np.arange(18)
_E16, _E17 = np.uint64(10**16), np.uint64(10**17)

WRITING = {"float64": (1e-290, 53, 15), "float32": (2.0**-126, 24, 6)}
"""For each type: the smallest number `write_number` writes, its bits, and its sure digits."""


def _powers_of_five() -> np.ndarray:
    """Return 5^q scaled to 128 bits, high and low half, for every q a double can need."""
    table = np.empty((_MAX_POWER - _MIN_POWER + 1, 2), np.uint64)
    for q in range(_MIN_POWER, _MAX_POWER + 1):
        five = 5 ** abs(q)
        if q >= 0:
            scaled = (five << 128) >> five.bit_length()
        elif q >= -27:  # rounded up, so that a number halfway between doubles is seen as such
            scaled = (1 << (five.bit_length() + 127)) // five + 1
        else:
            scaled = (1 << (2 * five.bit_length() + 128)) // five
            scaled >>= scaled.bit_length() - 128
        table[q - _MIN_POWER] = scaled >> 64, scaled & (2**64 - 1)
    return table


_FIVE = _powers_of_five()

# --- kernels: reading --------------------------------------------------------------------------


@kernel
def at(text, i):  # type: ignore[no-untyped-def]
    """Return ``text[i]``; an unsigned index spares the test for a negative one."""
    return text[np.uint64(i)]


@kernel
def digit_at(text, i):  # type: ignore[no-untyped-def]
    """Return the digit at ``i``; something below 0 or above 9 where there is none."""
    return np.int64(text[np.uint64(i)]) - _ZERO


@kernel
def _product(a, b):  # type: ignore[no-untyped-def]
    """Return the high and the low half of the 128-bit product of two uint64."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    cross = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (cross >> half), a * b


@kernel
def _nearest(w, q):  # type: ignore[no-untyped-def]
    """Return the double nearest to w · 10^q by (2), or NaN where 128 bits do not decide."""
    if w == 0 or q < _MIN_POWER:
        return 0.0
    if q > _MAX_POWER:
        return np.inf
    one, shift = np.uint64(1), 0
    while w >> np.uint64(63) == 0:
        w <<= one
        shift += 1
    high, low = _product(w, _FIVE[q - _MIN_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _product(w, _FIVE[q - _MIN_POWER, 1])
        low += more
        if low < more:
            high += one
        if low == np.uint64(0xFFFFFFFFFFFFFFFF):
            return np.nan
    top = high >> np.uint64(63)
    mantissa = high >> (top + np.uint64(9))
    exponent = ((217_706 * q) >> 16) + 1086 + np.int64(top) - shift
    if exponent <= 0:  # so small that digits are lost
        return np.nan
    odd = mantissa & np.uint64(3) == one
    if odd and low <= one and -4 <= q <= 23 and mantissa << (top + np.uint64(9)) == high:
        mantissa -= one  # halfway: down to the even one
    mantissa = (mantissa + (mantissa & one)) >> one
    if mantissa >> np.uint64(53):
        mantissa >>= one
        exponent += 1
    if exponent >= 0x7FF:
        return np.inf
    bits = (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52))
    return np.uint64(bits).view(np.float64)


@kernel
def _read_exponent(text, i):  # type: ignore[no-untyped-def]
    """Read what follows an 'e': return the exponent, where it ends, and whether it is one."""
    sign = -1 if at(text, i) == _MINUS else 1
    if at(text, i) == _MINUS or at(text, i) == _PLUS:
        i += 1
    power, start = 0, i
    while 0 <= digit_at(text, i) <= 9:
        power = min(power * 10 + digit_at(text, i), _MAX_EXPONENT)
        i += 1
    return sign * power, i, i > start


@kernel
def _first_digits(text, start, end):  # type: ignore[no-untyped-def]
    """Return the first 19 digits, from the first that is not 0, as w; and how many follow."""
    w, count, rest = np.uint64(0), 0, 0
    for i in range(start, end):
        if at(text, i) != _POINT and count == MAX_DIGITS:
            rest += 1
        elif at(text, i) != _POINT:
            w = w * np.uint64(10) + np.uint64(digit_at(text, i))
            count += int(w > 0)
    return w, rest


@kernel
def read_number(text, i):  # type: ignore[no-untyped-def]
    """Return the number at ``i``, where it ends, whether it was read, and if only 0s stand there.

    Only 0s: ``0`` and ``0.000``, but not ``-0`` nor ``0e5``.
    """
    negative = at(text, i) == _MINUS
    if negative or at(text, i) == _PLUS:
        i += 1
    start, w, power = i, np.uint64(0), 0
    digit = digit_at(text, i)
    while 0 <= digit <= 9:
        w = w * np.uint64(10) + np.uint64(digit)
        i += 1
        digit = digit_at(text, i)
    digits = i - start
    if at(text, i) == _POINT:
        i += 1
        point = i
        digit = digit_at(text, i)
        while 0 <= digit <= 9:
            w = w * np.uint64(10) + np.uint64(digit)
            i += 1
            digit = digit_at(text, i)
        power = point - i
        digits -= power
    if digits == 0:
        return 0.0, i, False, False
    rest = 0
    if digits > MAX_DIGITS:
        w, rest = _first_digits(text, start, i)
        power += rest
    zeros = w == 0 and not negative
    if at(text, i) == _SMALL_E or at(text, i) == _BIG_E:
        given, i, known = _read_exponent(text, i + 1)
        if not known:
            return 0.0, i, False, False
        power += given
        zeros = False
    if w <= _EXACT and -22 <= power <= 22:  # (1)
        value = np.float64(w)
        value = value / _TEN[-power] if power < 0 else value * _TEN[power]
    else:
        value = _nearest(w, power)  # (2)
        if rest > 0 and value != _nearest(w + np.uint64(1), power):  # the digits left out decide
            return 0.0, i, False, False
    return -value if negative else value, i, value == value, zeros


@kernel
def stands_at(text, i, word):  # type: ignore[no-untyped-def]
    """Whether the bytes of ``word`` stand at ``i``."""
    for k in range(len(word)):  # noqa: SIM110 (kernels have no generators)
        if at(text, i + k) != word[k]:
            return False
    return True


@kernel
def past_missing(text, i):  # type: ignore[no-untyped-def]
    """Return where a word for 'missing' at ``i`` ends, or ``i`` where none stands."""
    if stands_at(text, i, _NULL) or stands_at(text, i, _SMALL_NULL):
        return i + 4
    if stands_at(text, i, _NAN) or stands_at(text, i, _SMALL_NAN):
        return i + 3
    return i + 2 if stands_at(text, i, _NA) else i


# --- kernels: writing ------------------------------------------------------------------------


@kernel
def _scaled(x):  # type: ignore[no-untyped-def]
    """Return x · 10^k, of 17 digits, as its whole part and the rest; also k."""
    fraction, exponent = math.frexp(x)
    w = np.uint64(fraction * 2.0**53) << np.uint64(11)
    k = 16 - (((exponent - 1) * 78_913) >> 18)  # log10(2) = 78913 / 2^18, nearly
    while True:
        high, low = _product(w, _FIVE[k - _MIN_POWER, 0])
        more, _ = _product(w, _FIVE[k - _MIN_POWER, 1])
        low += more
        if low < more:
            high += np.uint64(1)
        below = np.uint64(63 - exponent - ((217_706 * k) >> 16))  # bits below the point in high
        whole = high >> below
        if _E16 <= whole < _E17:
            rest = (high << (np.uint64(64) - below)) | (low >> below)
            return np.int64(whole), np.float64(rest) * 2.0**-64, k
        k += 1 if whole < _E16 else -1


@kernel
def _shortest(x, bits, digits):  # type: ignore[no-untyped-def]
    """Return c and q with the shortest c · 10^q that is read as x > 0 by (3), and if it is sure.

    ``bits`` are those of the fraction: 53, or 24 of a float; ``digits`` so few that only one
    number of that length can be near x: 15, or 6.
    """
    whole, rest, k = _scaled(x)
    fraction, _ = math.frexp(x)
    near = np.float64(whole) / fraction * 2.0 ** -(bits + 1)
    step = _TENS[17 - digits]
    while step > 0:
        c = (whole + step // 2) // step
        if step == 1 and rest >= 0.5:
            c += 1
        away = np.float64(c * step - whole) - rest
        reach = near / 2 if away < 0 and fraction == 0.5 else near  # the gap below 2^j is half
        if abs(abs(away) - reach) < 1e-6 * reach:
            return 0, 0, False
        if abs(away) < reach:
            sure = abs(abs(away) - step / 2) > 1e-6
            power = 0
            while c % 10 == 0:
                c //= 10
                power += 1
            while step > 1:
                step //= 10
                power += 1
            return c, power - k, sure
        if fraction == 0.5:
            return 0, 0, False
        step //= 10
    return 0, 0, False


@kernel
def _write_digits(c, n, out, i):  # type: ignore[no-untyped-def]
    """Write the last ``n`` digits of ``c`` at ``i``; return where they end."""
    for j in range(i + n - 1, i - 1, -1):
        out[j] = _ZERO + c % 10
        c //= 10
    return i + n


@kernel
def _count_digits(c):  # type: ignore[no-untyped-def]
    n = 1
    while c >= 10:
        c //= 10
        n += 1
    return n


@kernel
def write_integer(c, out, i):  # type: ignore[no-untyped-def]
    """Write c >= 0 at ``i``; return where it ends."""
    return _write_digits(c, _count_digits(c), out, i)


@kernel
def write_number(x, how, out, i):  # type: ignore[no-untyped-def]
    """Write ``x`` at ``i`` as ``repr`` does, without a final '.0'; return its end, -1 if unsure.

    ``how`` is the entry of `WRITING` for the type that is to be read back.
    """
    smallest, bits, digits = how
    if x != x:
        out[i], out[i + 1], out[i + 2] = 78, 97, 78
        return i + 3
    if math.copysign(1.0, x) < 0:
        out[i] = _MINUS
        i += 1
    x = abs(x)
    if x == 0:
        out[i] = _ZERO
        return i + 1
    if not smallest <= x < np.inf:
        return -1
    c, power, sure = _shortest(x, bits, digits)
    if not sure:
        return -1
    n = _count_digits(c)
    size = n + power - 1  # of the first digit, as a power of ten
    if size < -4 or size >= 16:
        return _write_scientific(c, n, size, out, i)
    if power >= 0:
        i = _write_digits(c, n, out, i)
        return _write_digits(0, power, out, i)
    if size >= 0:
        scale = _TENS[-power]
        i = _write_digits(c // scale, n + power, out, i)
        out[i] = _POINT
        return _write_digits(c % scale, -power, out, i + 1)
    out[i], out[i + 1] = _ZERO, _POINT
    i = _write_digits(0, -size - 1, out, i + 2)
    return _write_digits(c, n, out, i)


@kernel
def _write_scientific(c, n, size, out, i):  # type: ignore[no-untyped-def]
    scale = _TENS[n - 1]
    out[i] = _ZERO + c // scale
    i += 1
    if n > 1:
        out[i] = _POINT
        i = _write_digits(c % scale, n - 1, out, i + 1)
    out[i], out[i + 1] = _SMALL_E, _MINUS if size < 0 else _PLUS
    return _write_digits(abs(size), 2 if abs(size) < 100 else 3, out, i + 2)
