"""Files of JSON lines with checksums: one that describes the file, records, and one with their number; `PartFile`.

Each line ends with a CRC32 of the text before it, which may be left out in lines written by hand. The last line shows
that a file was not cut off.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeAlias

from ..errors import InvalidInput, UsageError
from ..runtime.regular_files import NO_FOLLOW, NO_WAIT

#: The longest line. MySQL takes no larger packet, so no exported line is longer.
MAX_LINE_BYTES = 1 << 30

#: A number that may be larger than any float.
_MAY_OVERFLOW = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")

_SEAL = re.compile(rb',"crc32":"([0-9a-f]{8})"\}$')


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a file.

    Args:
        format: The format of the lines.
        content: All its fields, such as the tenant and the selection.
    """

    format: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """The last line of a file.

    Args:
        items: Number of lines between the first and the last one.
    """

    items: int


#: The content of a line: the first one, the last one, or a record.
Content: TypeAlias = Head | End | dict[str, Any]


def checksummed(content: Mapping[str, Any]) -> bytes:
    """Return the line of an object, with its checksum and line feed."""
    body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
    return body + b',"crc32":"%08x"}\n' % zlib.crc32(body)


def end_line(items: int) -> bytes:
    """Return the last line of a file with a number of records."""
    return checksummed({"end": {"items": items}})


def content_of(line: bytes, number: int) -> Content:
    """Read a line.

    Args:
        line: The line, with its line feed.
        number: Its number in the file, counted from 1.

    Raises:
        InvalidInput: It is damaged.
    """
    if not line.endswith(b"\n"):
        raise InvalidInput("It is cut off: it ends without a line feed.")
    body = line[:-1]
    seal = _SEAL.search(body)
    if seal is not None:
        body = body[: seal.start()]
        if zlib.crc32(body) != int(seal[1], 16):
            raise InvalidInput("It is damaged: it does not have the checksum that it was written with.")
        body += b"}"
    try:
        exact: dict[str, Callable[[str], Any]] = {"parse_constant": _refused}
        if _MAY_OVERFLOW.search(body):  # a number larger than any float would become an infinity
            exact["parse_float"] = _finite
        content = json.loads(body, **exact)  # type: ignore[arg-type]  # names of other options are not among these
    except (ValueError, RecursionError):
        raise InvalidInput("It is damaged: it is no JSON.") from None
    if not isinstance(content, dict):
        raise InvalidInput("It is no JSON object.")
    if number == 1:
        name = content.get("format")
        if not isinstance(name, str) or not name.startswith("locus-mysql "):
            raise InvalidInput("The file is no export: its first line does not say so.")
        return Head(name, content)
    if content.keys() == {"end"}:
        end = content["end"]
        if not isinstance(end, dict) or not isinstance(end.get("items"), int):
            raise InvalidInput("It ends the file, and does not say how many items there are.")
        return End(end["items"])
    return content


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError
    return number


def _refused(name: str) -> Any:
    raise ValueError(name)


def limited_lines(file: BinaryIO) -> Iterator[bytes]:
    """Read the lines of a file that may hold anything. The last line may have no line feed.

    Raises:
        InvalidInput: A line is longer than `MAX_LINE_BYTES`, or than the free memory.
    """
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
        except MemoryError:
            raise InvalidInput(
                f"Line {number} does not end within the free memory, and the limit of a line is {MAX_LINE_BYTES:,} "
                "bytes. Is this the file of an export?"
            ) from None
        if len(line) > MAX_LINE_BYTES:
            raise InvalidInput(
                f"Line {number} is longer than {MAX_LINE_BYTES:,} bytes, the limit of a line. Is this the file of an "
                "export?"
            )
        if not line:
            return
        yield line


try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]  # to mypy a name of a module stays one


def make_folder(path: Path) -> None:
    """Create a folder for files of an export, or continue one, that only its owner may read.

    Raises:
        UsageError: It cannot be created, or another user may have planted it.
    """
    try:
        path.mkdir(0o700, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
            raise FileExistsError(errno.EEXIST, "it is a link, or belongs to another user")
        path.chmod(0o700)
    except OSError as error:
        raise UsageError(f"{path} cannot be the folder of an export: {error.strerror}.") from None


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
