"""The encodings of embeddings: in full, and as a bit per dimension (signs); and NumPy, if it is installed."""

from __future__ import annotations

import hashlib
import math
import sys
from array import array
from collections.abc import Iterable
from typing import Any, NamedTuple

from ....engine.logs import CALLS
from ....errors import InvalidInput
from ....extras import install_command

np: Any
try:
    import numpy as np
except ImportError:  # pragma: no cover - depends on what is installed
    np = None

_warned: set[str] = set()

#: The signs of an embedding take at most 2,048 bytes. MySQL's VECTOR type has the same limit.
DIMENSIONS_LIMIT = 16_383

#: Types of NumPy arrays that are converted at once.
_FLOATS = () if np is None else (np.dtype(np.float32), np.dtype(np.float64))

#: The end of the error about an embedding of zeros.
NO_DIRECTION = "is all zeros (as 32-bit floats): it has no direction to be compared by."


class Coded(NamedTuple):
    """An embedding in each of its forms.

    Args:
        embedding: 32-bit floats, little-endian.
        sig: A bit per dimension; that of the first dimension is the highest of the first byte.
        model: The model; see `model_number`.
    """

    embedding: bytes
    sig: bytes
    model: int = 0

    @property
    def is_zero(self) -> bool:
        """Whether all numbers are zero."""
        return not any(decode_vector(self.embedding))


def model_number(name: str) -> int:
    """Return the number that stands for a model beside its embeddings: a digest of its name; 0 for an unnamed one."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) if name else 0


def encode_vector(vector: Any, dims: int | None, what: str = "The embedding", *, model: int = 0) -> Coded:
    """Encode an embedding.

    Args:
        vector: Numbers: a list, an array of any kind, or a NumPy array of one dimension.
        dims: The width that the embedding must have; any width if None.
        what: The name of the embedding in errors.
        model: The model that computed it.

    Raises:
        InvalidInput: The embedding has another width, or contains NaN or an infinity, as 32-bit floats.
    """
    values = finite_floats(vector, dims, what)
    return Coded(encode_floats(values), signs_of(values), model)


def floats_of(vector: Any, dims: int | None, what: str = "The embedding") -> array[float]:
    """Return an embedding as 32-bit floats. Raises as `encode_vector` does, and if all of them are zeros."""
    values = finite_floats(vector, dims, what)
    if not any(values):
        raise InvalidInput(f"{what} {NO_DIRECTION}")
    return values


def finite_floats(vector: Any, dims: int | None, what: str = "The embedding") -> array[float]:
    """Return an embedding, which may be all zeros, as 32-bit floats."""
    if np is not None and isinstance(vector, np.ndarray) and vector.dtype in _FLOATS and vector.ndim == 1:
        with np.errstate(over="ignore"):
            narrow = vector.astype(np.float32)
        values, finite = array("f", narrow.tobytes()), bool(np.isfinite(narrow).all())
        return _checked(values, dims, what, finite=finite)
    if isinstance(vector, str | bytes) or not isinstance(vector, Iterable):
        raise InvalidInput(f"{what} must be a list of numbers, not {type(vector).__name__}.")
    try:
        values = array("f", vector)
    except OverflowError:
        raise InvalidInput(f"{what} holds a number that a 32-bit float cannot hold.") from None
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} contains a value that is not a number.") from None
    return _checked(values, dims, what, finite=all(map(math.isfinite, values)))


def _checked(values: array[float], dims: int | None, what: str, *, finite: bool) -> array[float]:
    if dims is not None and len(values) != dims:
        raise InvalidInput(f"{what} has {len(values)} dimensions; the store's have {dims} (dims).")
    if not 1 <= len(values) <= DIMENSIONS_LIMIT:
        raise InvalidInput(f"{what} has {len(values)} dimensions; it may have 1 to {DIMENSIONS_LIMIT}.")
    if not finite:
        raise InvalidInput(f"{what} holds NaN or an infinity (as a 32-bit float).")
    return values


def decode_vector(raw: bytes) -> array[float]:
    """Return the 32-bit floats of a stored embedding."""
    values = array("f", raw)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def signs_of(values: array[float]) -> bytes:
    """Return a bit per dimension: whether it is above zero."""
    bits = "".join("1" if value > 0 else "0" for value in values)
    width = -(-len(bits) // 8)
    return int(bits.ljust(8 * width, "0"), 2).to_bytes(width)


def encode_floats(values: array[float]) -> bytes:
    """Return 32-bit floats as they are stored."""
    if sys.byteorder == "little":
        return values.tobytes()
    swapped = array("f", values)
    swapped.byteswap()
    return swapped.tobytes()


def warn_if_numpy_is_missing() -> None:
    """Log once that searches are slower without NumPy."""
    if np is None and not _warned:
        _warned.add("slow")
        CALLS.warning(
            "NumPy is not installed: searches by meaning give the same results, but more slowly. Run %s.",
            install_command("vectors"),
        )
