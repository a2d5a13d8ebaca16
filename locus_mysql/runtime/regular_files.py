"""Files in folders where other users may create files: only regular files are read, without blocking.

Opening a FIFO waits for its other end, and a device such as ``/dev/zero`` never ends. So a file is opened without
blocking, and its type is checked before anything is read. A link may lead out of a folder, and is followed only where
the caller named the file.
"""

from __future__ import annotations

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
