"""Files that several runs may write, and that are renamed when they are complete: `PartFile`."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ..errors import UsageError
from ..runtime.regular_files import NO_FOLLOW, NO_WAIT

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]  # to mypy a name of a module stays one


class PartFile:
    """A file whose name ends with ``.part`` until it is complete. Resumes a partially written file.

    Only its owner may read it, whatever the mode of the part was, or of a file that has the name already. A part that
    another user may have planted is refused: a link, a FIFO, another user's file, or a file with a second name.

    Args:
        path: The name of the complete file.

    Raises:
        UsageError: The file cannot be written, or another process is writing it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.part = path.with_name(f"{path.name}.part")
        try:
            descriptor = os.open(self.part, os.O_RDWR | os.O_CREAT | NO_FOLLOW | NO_WAIT, 0o600)
        except OSError as error:
            reason = "it is a link" if self.part.is_symlink() else error.strerror
            raise UsageError(f"{self.part} cannot be written: {reason}. Remove it, or choose another name.") from None
        try:
            self._own(descriptor)
            self._file: BinaryIO = os.fdopen(descriptor, "r+b")
        except BaseException:
            os.close(descriptor)
            raise

    def _own(self, descriptor: int) -> None:
        """Refuse a file that was planted or is being written, and restrict reading to its owner."""
        found = os.fstat(descriptor)
        planted = not stat.S_ISREG(found.st_mode) or found.st_nlink > 1
        if planted or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
            raise UsageError(
                f"{self.part} exists and was not left by an export of yours: it is no regular file, belongs to another "
                "user or has a second name. Remove it, or choose another name."
            )
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, 0o600)
        except BlockingIOError:
            raise UsageError(f"{self.part} is being written by another process. Wait until that has ended.") from None
        except OSError as error:
            raise UsageError(f"{self.part} cannot be written: {error.strerror}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not os.fstat(self._file.fileno()).st_size and self._has_its_name():
            self.part.unlink()  # nothing was written
        self._file.close()

    def _has_its_name(self) -> bool:
        """Return whether the file under the name with ``.part`` is still this one."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self.part))
        except OSError:
            return False

    def read_from_start(self) -> BinaryIO:
        """Return the file, positioned at its beginning."""
        self._file.seek(0)
        return self._file

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file to its first bytes, and continue after them."""
        self._file.truncate(size_bytes)
        self._file.seek(size_bytes)

    def write(self, data: bytes) -> None:
        """Append data.

        Raises:
            UsageError: The file cannot be written, for example because the disk is full.
        """
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise UsageError(f"{self.part} cannot be written: {error.strerror}.") from None

    def finish(self) -> None:
        """Flush the file to the disk, and give it its name, replacing a file of that name.

        Raises:
            UsageError: Another file was put under the name with ``.part``.
        """
        os.fsync(self._file.fileno())
        try:
            same = self._has_its_name()
            if same:
                self.part.replace(self.path)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}.") from None
        if not same:
            raise UsageError(f"{self.part} was replaced while it was being written. Export again into another folder.")
