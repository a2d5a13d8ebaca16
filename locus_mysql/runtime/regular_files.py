"""Files in folders where other users may create files: only regular files are read and written, without blocking.

Opening a FIFO waits for its other end, and a device such as ``/dev/zero`` never ends. So a file is opened without
blocking, and its type is checked before anything is read. A link may lead out of a folder, and is followed only where
the caller named the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

#: Missing on Windows, which has neither FIFOs nor, for most users, links.
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


_IS_LINK = "it is a link, and links are not followed"
_NOT_REGULAR = "it is no regular file"


class NotRegular(OSError):
    """A link, a folder, a FIFO, a socket or a device was found in the place of a regular file."""


def open_regular(path: Path, *, follow_links: bool = False) -> BinaryIO:
    """Open a regular file for reading.

    Args:
        path: The file.
        follow_links: Whether it may be a link to a regular file. Links among its folders are always followed.

    Raises:
        NotRegular: It is not a regular file.
        OSError: It cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_WAIT | (0 if follow_links else NO_FOLLOW))
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK} and path.is_symlink():
            raise NotRegular(errno.EINVAL, _IS_LINK) from None
        if error.errno == errno.ENXIO:  # a socket
            raise NotRegular(errno.EINVAL, _NOT_REGULAR) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise NotRegular(errno.EISDIR, os.strerror(errno.EISDIR))
        raise NotRegular(errno.EINVAL, _NOT_REGULAR)
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, limit_bytes: int, *, follow_links: bool = False) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file.
        limit_bytes: The largest size that is read.
        follow_links: Whether it may be a link to a regular file.

    Raises:
        NotRegular: It is not a regular file.
        OSError: It cannot be read, or is larger than the limit or the free memory.
    """
    with open_regular(path, follow_links=follow_links) as file:
        if os.fstat(file.fileno()).st_size > limit_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {limit_bytes:,} bytes")
        try:
            content = file.read(limit_bytes + 1)
        except MemoryError:
            raise OSError(errno.ENOMEM, "it is larger than the memory that is left") from None
    if len(content) > limit_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {limit_bytes:,} bytes")
    return content


def write_regular(path: Path, content: bytes) -> None:
    """Write a temporary file in the same folder and rename it, so that no partial file is visible. No link is followed.

    Args:
        path: The file. An existing file or link of this name is replaced. Its folder may not be a link; the folders
            above may.
        content: The content of the file.

    Raises:
        NotRegular: The folder is a link, or something else than a regular file has the name with ``.tmp`` appended.
        OSError: The file cannot be written.
    """
    temporary = f"{path.name}.tmp"
    folder = _open_folder(path.parent)
    try:
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(_within(path, temporary, folder), dir_fd=folder, follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode):
                raise NotRegular(errno.EINVAL, f"{temporary!r}: {_IS_LINK if stat.S_ISLNK(mode) else _NOT_REGULAR}")
            os.unlink(_within(path, temporary, folder), dir_fd=folder)  # of a write that was killed
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | NO_WAIT
        with os.fdopen(os.open(_within(path, temporary, folder), flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(content)
        names = (_within(path, temporary, folder), _within(path, path.name, folder))
        os.replace(*names, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        if folder is not None:
            os.close(folder)


def _open_folder(path: Path) -> int | None:
    """Open a folder that is not a link; None on systems that do not name files by an open folder."""
    if path.is_symlink():
        raise NotRegular(errno.EINVAL, f"folder {path.name!r}: {_IS_LINK}")
    if os.open not in os.supports_dir_fd:  # pragma: no cover - Windows
        return None
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW)


def _within(path: Path, name: str, folder: int | None) -> str:
    """Return the name of a file of an open folder, or its path where folders are not opened."""
    return name if folder is not None else str(path.with_name(name))
