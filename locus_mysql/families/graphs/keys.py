"""Ids: checks of callers' ids, and keys of fixed length for names of any length."""

from __future__ import annotations

import hashlib

from ...errors import InvalidInput
from ...runtime.arguments import check_text

#: Ids of checkpoints and tasks, in characters. Namespaces may be of any length.
ID_LIMIT = 512

_KEY_BYTES = 16


def check_id(value: object, what: str) -> str:
    """Check an id: text of 1 to 512 characters."""
    text = check_text(value, what)
    if not 1 <= len(text) <= ID_LIMIT:
        raise InvalidInput(f"{what} has {len(text)} characters; it must have 1 to {ID_LIMIT}.")
    return text


def ns_key(ns: str) -> bytes:
    """The key of a namespace."""
    return _digest(_encoded(ns))


def checkpoint_key(ns: str, checkpoint_id: str) -> bytes:
    """The key of a checkpoint. The length comes first, so that different pairs of texts have different bytes."""
    space = _encoded(ns)
    return _digest(b"%d:%b%b" % (len(space), space, _encoded(checkpoint_id)))


def task_key(task_id: str) -> bytes:
    """The key of a task."""
    return _digest(_encoded(task_id))


def run_key(run_id: str) -> bytes:
    """The key of a run."""
    return _digest(_encoded(run_id))


def _encoded(name: str) -> bytes:
    """Encode a name.

    Raises:
        InvalidInput: It contains a lone surrogate.
    """
    try:
        return name.encode()
    except UnicodeEncodeError:
        return check_text(name, f"The id or namespace {name!r:.60}").encode()


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text, usedforsecurity=False).digest()[:_KEY_BYTES]
