"""The folder of Locus' `FileCheckpointer` as a side of a copy.

Files are read directly, as they hold more than the checkpointer returns. A thread is a folder and a checkpoint a file
of JSON: ``checkpoint_id``, ``thread_id``, ``created_at``, ``state`` and ``metadata``, in this order
(``locus.memory.backends.file`` of locus-sdk 3.0.1). In the names of both, all characters but letters, digits, ``-`` and
``_`` are replaced by ``_``. So threads may share a folder; each file holds its ids.

Others may write into such a folder. So links are not followed, neither of folders nor of files, and only regular files
are read, up to a size: a FIFO would block and a device would never end.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locus.core.state import AgentState
from locus.memory.backends.file import FileCheckpointer

from ....errors import CorruptCheckpoint, UsageError
from ....runtime.exact_json import decode_json
from ....runtime.regular_files import NotRegular, open_regular, read_regular
from ....runtime.transfer import Notify
from ....transfer.thread_sides import CopySource, ListedCheckpoint, UnreadableCheckpoint
from .agent_checkpoints import LOADED_BYTES, AgentCheckpoint
from .checkpointers import BEGINNING_OF_TIME, CheckpointerTarget, state_of, time_of, why_unreadable
from .private_attributes import LinklessFiles, thread_folder

#: Bytes at the beginning of a file that hold the ids and the time of its checkpoint.
_HEAD_BYTES = 2048

_JSON_STRING = r'("(?:[^"\\]|\\.)*")'
_HEAD = re.compile(r'^\{\s*"checkpoint_id":\s*%s,\s*"thread_id":\s*%s,\s*"created_at":\s*%s,' % ((_JSON_STRING,) * 3))

#: Folders whose lists are cached.
_FOLDERS_CACHED = 64

#: Files that are read concurrently.
_FILES_AT_ONCE = 16

#: The largest file that is read: MySQL takes no larger packet.
MAX_FILE_BYTES = 1 << 30

LINKED = "what folders hold that are links, as links are not followed"


class FileSource(CopySource):
    """Reads the folder of a `FileCheckpointer`.

    Args:
        checkpointer: The checkpointer.
        notify: Receives a message about each folder that threads share.
    """

    def __init__(self, checkpointer: FileCheckpointer, notify: Notify) -> None:
        self.base = Path(checkpointer.base_dir)
        self.gaps = set()
        self._checkpointer = checkpointer
        self._notify = notify
        self._lists: dict[Path, dict[str, list[ListedCheckpoint]]] = {}
        self._folders_of: dict[str, Path] = {}

    async def open(self) -> None:
        """Check that the folder exists.

        Raises:
            CorruptCheckpoint: It does not.
        """
        if not await asyncio.to_thread(self.base.is_dir):
            raise CorruptCheckpoint(f"{self.base} is no folder; there is nothing to copy.")

    async def count(self, pattern: str) -> int:
        """Return the number of folders."""
        return len(await asyncio.to_thread(self._folders))

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of its threads, folder by folder."""
        for folder in await asyncio.to_thread(self._folders):
            threads = await self._threads_in(folder)
            if len(threads) > 1:
                names = ", ".join(map(repr, sorted(threads)))
                self._notify(
                    f"Threads {names} share the folder {folder.name!r} in the source, and Locus takes them for one. "
                    "They are several threads now; check that each has only its own checkpoints."
                )
            for thread_id in list(threads):
                if thread_id in self._folders_of:
                    self._notify(
                        f"Thread {thread_id!r} is in {folder.name!r} too; its checkpoints there were left out."
                    )
                    continue
                self._folders_of[thread_id] = folder
                yield thread_id

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first."""
        folder = self._folders_of.get(thread_id) or thread_folder(self._checkpointer, thread_id)
        found = self._lists.get(folder, {}).pop(thread_id, None)
        return (await asyncio.to_thread(threads_in, folder)).get(thread_id, []) if found is None else found

    async def load(
        self, thread_id: str, wanted: Sequence[ListedCheckpoint]
    ) -> AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]:
        """Load some of the checkpoints, in their order."""
        pending = deque(wanted)
        while pending:
            some, size = [pending.popleft()], 0
            while (
                pending and len(some) < _FILES_AT_ONCE and (size := size + some[-1].locator.size_bytes) < LOADED_BYTES
            ):
                some.append(pending.popleft())
            for found in await asyncio.to_thread(load_all, thread_id, some):
                if found is not None:
                    yield found

    def _folders(self) -> list[Path]:
        """List the folders of threads. Those that are links are left out, and noted as a gap."""
        folders = []
        for entry in sorted(self.base.iterdir()):
            if entry.is_symlink():
                if entry.is_dir():
                    self.gaps.add(LINKED)
            elif entry.is_dir():
                folders.append(entry)
        return folders

    async def _threads_in(self, folder: Path) -> dict[str, list[ListedCheckpoint]]:
        """List the threads of a folder. The list is cached, as `checkpoints` is called right afterwards."""
        self._lists[folder] = found = await asyncio.to_thread(threads_in, folder)
        if len(self._lists) > _FOLDERS_CACHED:
            del self._lists[next(iter(self._lists))]
        return dict(found)


class FileTarget(CheckpointerTarget):
    """Writes the folder of a `FileCheckpointer`.

    Args:
        checkpointer: The checkpointer.
        dry: Whether nothing may be written.
    """

    def __init__(self, checkpointer: FileCheckpointer, *, dry: bool) -> None:
        files = LinklessFiles(checkpointer)
        super().__init__(files, owned=False, dry=dry)
        self.gaps = {gap.replace(LinklessFiles.__name__, FileCheckpointer.__name__) for gap in self.gaps}
        self.base = Path(checkpointer.base_dir)
        self._files = files

    def location_of(self, thread_id: str) -> str | None:
        """Return the thread's folder; some systems do not distinguish upper from lower case."""
        return thread_folder(self._files, thread_id).name.casefold()

    def refusal(self, thread_id: str, stored: Mapping[str, object]) -> str | None:
        """Return why a thread cannot be stored: its folder is another thread's, or a link."""
        folder = thread_folder(self._files, thread_id)
        if folder.is_symlink():
            return (
                f"Folder {folder.name!r} of thread {thread_id!r} is a link in the target, and links are not followed."
            )
        others = threads_in(folder).keys() - {thread_id} if stored else ()
        if others:
            return f"Thread {thread_id!r} would share its folder in the target with {min(others)!r}."
        return None

    async def save(self, state: AgentState, thread_id: str, one: AgentCheckpoint) -> str:
        """Save a checkpoint.

        Raises:
            UsageError: Another file or a link is in its way.
        """
        try:
            return await super().save(state, thread_id, one)
        except NotRegular as error:
            raise UsageError(
                f"Checkpoint {one.checkpoint_id!r} cannot be written: {error.strerror}. Remove what is in its way."
            ) from None


@dataclass(frozen=True, slots=True)
class File:
    """The file of a checkpoint."""

    path: Path
    size_bytes: int


def threads_in(folder: Path) -> dict[str, list[ListedCheckpoint]]:
    """List the checkpoints in a folder by their threads, oldest first."""
    found: dict[str, list[ListedCheckpoint]] = {}
    for thread_id, listed in _heads_in(folder):
        found.setdefault(thread_id, []).append(listed)
    for listed_ones in found.values():
        listed_ones.sort(key=lambda one: (one.saved_at or BEGINNING_OF_TIME, one.locator.path.name))
    return found


def load_all(thread_id: str, wanted: Sequence[ListedCheckpoint]) -> list[AgentCheckpoint | UnreadableCheckpoint | None]:
    """Load the checkpoints in some files."""
    return [load_file(thread_id, one) for one in wanted]


def load_file(thread_id: str, listed: ListedCheckpoint) -> AgentCheckpoint | UnreadableCheckpoint | None:
    """Load the checkpoint in a file; None if the file was deleted."""
    path: Path = listed.locator.path
    try:
        content = decode_json(read_regular(path, MAX_FILE_BYTES))
        state = state_of(content["state"])
        metadata = content.get("metadata")
    except FileNotFoundError:
        return None
    except OSError as error:
        return UnreadableCheckpoint(listed.checkpoint_id, f"{path.name!r} cannot be read: {error.strerror}")
    except CorruptCheckpoint:
        return UnreadableCheckpoint(listed.checkpoint_id, f"{path.name!r} is not readable JSON")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return UnreadableCheckpoint(listed.checkpoint_id, why_unreadable(error))
    saved_at = time_of(content.get("created_at"))
    return AgentCheckpoint(
        listed.checkpoint_id, thread_id, state, metadata if isinstance(metadata, dict) else {}, saved_at
    )


def _heads_in(folder: Path) -> Iterator[tuple[str, ListedCheckpoint]]:
    """List thread and checkpoint of each file; if the file does not hold the ids, those of its folder and name."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in folder.glob("*.json"):
        try:
            size_bytes = path.lstat().st_size
        except OSError:  # deleted since it was listed
            continue
        content = _head_of(path)
        thread_id, checkpoint_id = content.get("thread_id"), content.get("checkpoint_id")
        yield (
            thread_id if isinstance(thread_id, str) and thread_id else folder.name,
            ListedCheckpoint(
                checkpoint_id if isinstance(checkpoint_id, str) and checkpoint_id else path.stem,
                time_of(content.get("created_at")),
                File(path, size_bytes),
            ),
        )


def _head_of(path: Path) -> Mapping[str, Any]:
    """Return the ids and the time at the beginning of a file; its whole content if they are elsewhere."""
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
