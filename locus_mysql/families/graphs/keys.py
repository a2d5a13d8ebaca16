"""Names of any length as keys of fixed length."""

from __future__ import annotations

import hashlib

_KEY_BYTES = 16


def ns_key(ns: str) -> bytes:
    """The key of a namespace."""
    return _digest(ns.encode())


def version_key(ns: str, checkpoint_id: str) -> bytes:
    """The key of a checkpoint. The length comes first, so that different pairs of texts have different bytes."""
    space = ns.encode()
    return _digest(b"%d:%b%b" % (len(space), space, checkpoint_id.encode()))


def task_key(task_id: str) -> bytes:
    """The key of a task."""
    return _digest(task_id.encode())


def run_key(run_id: str) -> bytes:
    """The key of a run."""
    return _digest(run_id.encode())


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text, usedforsecurity=False).digest()[:_KEY_BYTES]
