"""Files that are written piece by piece, and have their name only when they are whole: `PartFile`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ..errors import UsageError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]  # to mypy a name of a module stays one


class PartFile:
    """A file under the name with ``.part`` behind it until it is whole; what is there of it is gone on with.

    Only its owner may read it.

    Args:
        path: The name that it will have.

    Raises:
        UsageError: It cannot be written, or another process is writing it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.part = path.with_name(f"{path.name}.part")
        try:
            self._file: BinaryIO = os.fdopen(os.open(self.part, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.part} is being written by another process. Wait until that has ended.") from None
        except OSError as error:
            raise UsageError(f"{self.part} cannot be written: {error.strerror}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def lines(self) -> Iterator[bytes]:
        """The lines that are there, with their line feeds; the last one may have none."""
        self._file.seek(0)
        for line in self._file:  # noqa: UP028 - `yield from` would close the file when the caller stops
            yield line

    def cut(self, size_bytes: int) -> None:
        """Keep only so much of it, and write behind that."""
        self._file.truncate(size_bytes)
        self._file.seek(size_bytes)

    def write(self, data: bytes) -> None:
        """Add to it.

        Raises:
            UsageError: There is no room, or the like.
        """
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise UsageError(f"{self.part} cannot be written: {error.strerror}.") from None

    def finish(self) -> None:
        """Make sure that it is on the disk, and give it its name, in the place of what has that name."""
        os.fsync(self._file.fileno())
        self.part.replace(self.path)
