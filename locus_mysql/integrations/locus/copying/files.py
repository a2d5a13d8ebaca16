"""Locus' `FileCheckpointer` as a side of a copy. Its files are read as they are, since they tell more than it does.

A thread is a folder and a checkpoint a file of JSON: ``checkpoint_id``, ``thread_id``, ``created_at``, ``state`` and
``metadata``, in this order (``locus.memory.backends.file`` of locus-sdk 3.0.1). In the names of both, all but letters,
digits, ``-`` and ``_`` becomes ``_``. So threads may share a folder; each file says whose it is.

Others may write into such a folder. So links are not followed, neither of folders nor of files, and only regular files
are read, up to a size: a FIFO would be waited for and a device would never end.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from locus.memory.backends.file import FileCheckpointer

from ....errors import CorruptCheckpoint
from ....runtime.exact_json import decode_json
from ....runtime.regular_files import open_regular, read_regular
from .checkpointers import CheckpointerTarget, state_of, time_of, why_unreadable
from .sides import ASKED_BYTES, Given, Listed, Tell, Unreadable

#: Bytes of a file in which stands what is known of its checkpoint before the state.
_HEAD_BYTES = 2048

_JSON_STRING = r'("(?:[^"\\]|\\.)*")'
_HEAD = re.compile(r'^\{\s*"checkpoint_id":\s*%s,\s*"thread_id":\s*%s,\s*"created_at":\s*%s,' % ((_JSON_STRING,) * 3))

_BEGINNING_OF_TIME = datetime(1000, 1, 1, tzinfo=UTC)

#: Folders whose lists are kept.
_FOLDERS_KEPT = 64

#: Files that are read at a time.
_FILES_AT_ONCE = 16

#: The largest file that is read: MySQL takes no larger packet.
MAX_FILE_BYTES = 1 << 30

LINKED = "what folders hold that are links, as links are not followed"


class FileSource:
    """Reads the folder of a `FileCheckpointer`.

    Args:
        checkpointer: The checkpointer.
        tell: Told of threads that share a folder.
    """

    def __init__(self, checkpointer: FileCheckpointer, tell: Tell) -> None:
        self.base = Path(checkpointer.base_dir)
        self._folder_of = checkpointer._get_thread_dir
        self._tell = tell
        self._read: dict[Path, dict[str, list[Listed]]] = {}
        self._where: dict[str, Path] = {}
        self.gaps: set[str] = set()

    async def open(self) -> None:
        """Make sure that there is such a folder.

        Raises:
            CorruptCheckpoint: There is none.
        """
        if not await asyncio.to_thread(self.base.is_dir):
            raise CorruptCheckpoint(f"{self.base} is no folder; there is nothing to copy.")

    async def count(self, pattern: str) -> int | None:
        """How many folders there are."""
        return len(await asyncio.to_thread(self._folders))

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """The ids of its threads, folder by folder."""
        for folder in await asyncio.to_thread(self._folders):
            threads = await self._threads_in(folder)
            if len(threads) > 1:
                names = ", ".join(map(repr, sorted(threads)))
                self._tell(
                    f"Threads {names} share the folder {folder.name!r} in the source, and Locus takes them for one. "
                    "They are several threads now; look whether each has only its own checkpoints."
                )
            for thread_id in list(threads):
                if thread_id in self._where:
                    self._tell(f"Thread {thread_id!r} is in {folder.name!r} too; what is there was left out.")
                    continue
                self._where[thread_id] = folder
                yield thread_id

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first."""
        folder = self._where.get(thread_id) or self._folder_of(thread_id)
        found = self._read.get(folder, {}).pop(thread_id, None)
        return (await asyncio.to_thread(threads_in, folder)).get(thread_id, []) if found is None else found

    async def given(self, thread_id: str, wanted: Sequence[Listed]) -> AsyncGenerator[Given | Unreadable, None]:
        """Some of these, in their order."""
        waiting = deque(wanted)
        while waiting:
            some, size = [waiting.popleft()], 0
            while waiting and len(some) < _FILES_AT_ONCE and (size := size + some[-1].place.size_bytes) < ASKED_BYTES:
                some.append(waiting.popleft())
            for found in await asyncio.to_thread(give_all, thread_id, some):
                if found is not None:
                    yield found

    async def close(self) -> None:
        """Nothing was opened."""

    def _folders(self) -> list[Path]:
        """The folders of threads. Those that are links are left out, and counted as gaps."""
        folders = []
        for entry in sorted(self.base.iterdir()):
            if entry.is_symlink():
                if entry.is_dir():
                    self.gaps.add(LINKED)
            elif entry.is_dir():
                folders.append(entry)
        return folders

    async def _threads_in(self, folder: Path) -> dict[str, list[Listed]]:
        """The threads of a folder. What is in it is kept for a while, as it is asked for right afterwards."""
        self._read[folder] = found = await asyncio.to_thread(threads_in, folder)
        if len(self._read) > _FOLDERS_KEPT:
            del self._read[next(iter(self._read))]
        return dict(found)


class FileTarget(CheckpointerTarget):
    """Writes a `FileCheckpointer`.

    Args:
        checkpointer: The checkpointer.
        dry: Whether nothing may be written.
    """

    def __init__(self, checkpointer: FileCheckpointer, *, dry: bool) -> None:
        super().__init__(checkpointer, owned=False, dry=dry)
        self.base = Path(checkpointer.base_dir)
        self._folder_of = checkpointer._get_thread_dir

    def place_of(self, thread_id: str) -> str | None:
        """The thread's folder; some systems do not tell upper from lower case."""
        return self._folder_of(thread_id).name.casefold()

    def refusal(self, thread_id: str, there: Mapping[str, object]) -> str | None:
        """A thread cannot be kept in a folder that another one has."""
        others = threads_in(self._folder_of(thread_id)).keys() - {thread_id} if there else ()
        if others:
            return f"Thread {thread_id!r} would share its folder in the target with {min(others)!r}."
        return None


@dataclass(frozen=True, slots=True)
class File:
    """Where a checkpoint is."""

    path: Path
    size_bytes: int


def threads_in(folder: Path) -> dict[str, list[Listed]]:
    """The checkpoints in a folder by their threads, oldest first."""
    found: dict[str, list[Listed]] = {}
    for thread_id, listed in _heads_in(folder):
        found.setdefault(thread_id, []).append(listed)
    for listed_ones in found.values():
        listed_ones.sort(key=lambda one: (one.saved_at or _BEGINNING_OF_TIME, one.place.path.name))
    return found


def give_all(thread_id: str, wanted: Sequence[Listed]) -> list[Given | Unreadable | None]:
    """What some files hold."""
    return [give(thread_id, one) for one in wanted]


def give(thread_id: str, listed: Listed) -> Given | Unreadable | None:
    """What a file holds; None if it is gone."""
    path: Path = listed.place.path
    try:
        content = decode_json(read_regular(path, MAX_FILE_BYTES))
        state = state_of(content["state"])
        metadata = content.get("metadata")
    except FileNotFoundError:
        return None
    except OSError as error:
        return Unreadable(listed.checkpoint_id, f"{path.name!r} cannot be read: {error.strerror}")
    except CorruptCheckpoint:
        return Unreadable(listed.checkpoint_id, f"{path.name!r} is not readable JSON")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return Unreadable(listed.checkpoint_id, why_unreadable(error))
    saved_at = time_of(content.get("created_at"))
    return Given(listed.checkpoint_id, thread_id, state, metadata if isinstance(metadata, dict) else {}, saved_at)


def _heads_in(folder: Path) -> Iterator[tuple[str, Listed]]:
    """Thread and checkpoint of each file. Of one that does not say, those that its names suggest."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.glob("*.json"):
        try:
            size_bytes = path.lstat().st_size
        except OSError:  # it went meanwhile
            continue
        content = _head_of(path)
        thread_id, checkpoint_id = content.get("thread_id"), content.get("checkpoint_id")
        yield (
            thread_id if isinstance(thread_id, str) and thread_id else folder.name,
            Listed(
                checkpoint_id if isinstance(checkpoint_id, str) and checkpoint_id else path.stem,
                time_of(content.get("created_at")),
                File(path, size_bytes),
            ),
        )


def _head_of(path: Path) -> Mapping[str, Any]:
    """What a file says before its state; all that it says if that is not at its beginning."""
    try:
        with open_regular(path) as file:
            found = _HEAD.match(file.read(_HEAD_BYTES).decode(errors="replace"))
        if found:
            names = ("checkpoint_id", "thread_id", "created_at")
            return dict(zip(names, map(json.loads, found.groups()), strict=True))
        content = decode_json(read_regular(path, MAX_FILE_BYTES))
    except (OSError, ValueError, CorruptCheckpoint):
        return {}
    return content if isinstance(content, dict) else {}
