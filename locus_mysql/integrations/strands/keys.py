"""The keys of a storage, and the threads that hold their bytes. No I/O.

A key is a thread with one checkpoint. The snapshots of one agent are the exception: they are checkpoints of one thread,
so that each is delta-coded against the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from strands.types.exceptions import StorageError

#: The beginning of the ids of threads.
PREFIX = "strands/"

#: The id of the only checkpoint of a key.
CONTENT = "content"

#: The folder of an agent's snapshots.
SNAPSHOTS = "/snapshots/"

_SNAPSHOT = re.compile(r"(.+/snapshots/)(snapshot_latest\.json|immutable_history/snapshot_[\w-]{1,64}\.json)", re.ASCII)


class ThreadAddress(NamedTuple):
    """The thread and the checkpoint that hold the bytes of a key."""

    thread_id: str
    checkpoint_id: str

    @property
    def is_shared(self) -> bool:
        """Whether the thread holds the snapshots of an agent, one for each of several keys."""
        return self.thread_id.endswith("/")


def address_of(key: str) -> ThreadAddress:
    """Return the thread and the checkpoint of a normalized key."""
    snapshot = _SNAPSHOT.fullmatch(key)
    return ThreadAddress(PREFIX + snapshot[1], snapshot[2]) if snapshot else ThreadAddress(PREFIX + key, CONTENT)


def shared_threads_above(prefix: str) -> Iterator[str]:
    """Yield the threads of snapshots some of whose keys may begin with a prefix that is longer than the thread."""
    for found in re.finditer(SNAPSHOTS, prefix):
        yield PREFIX + prefix[: found.end()]


def normalized_key(key: str) -> str:
    """Return a key as the framework's own storages do: without slashes at its ends, each run of slashes as one.

    Raises:
        StorageError: It is empty, has a backslash, or a segment ``..``.
    """
    key = _checked(key, "key").strip("/")
    if not key:
        raise StorageError("Storage key must not be empty")
    return key


def normalized_prefix(prefix: str) -> str:
    """Return the beginning of a key. It may be empty, and a slash at its end counts.

    Raises:
        StorageError: It has a backslash, or a segment ``..``.
    """
    return _checked(prefix, "prefix").lstrip("/")


def _checked(text: str, what: str) -> str:
    if "\\" in text:
        raise StorageError(f"Invalid storage {what} '{text}': backslashes are not allowed")
    text = re.sub(r"/+", "/", text)
    if ".." in text.split("/"):
        raise StorageError(f"Invalid storage {what} '{text}': '..' path segments are not allowed")
    return text
