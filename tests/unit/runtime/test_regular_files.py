"""Only regular files are opened, and opening never blocks."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from locus_mysql.runtime.regular_files import NotRegular, open_regular, read_regular


def test_a_regular_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_bytes(b"12345")
    assert read_regular(file, 5) == b"12345"
    with open_regular(file) as opened:
        assert opened.read() == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(file, 4)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 5)


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (link := tmp_path / "link").symlink_to("file")
    assert read_regular(link, 5, follow_links=True) == b"12345"
    with pytest.raises(NotRegular, match="links are not followed"):
        read_regular(link, 5)


@pytest.mark.parametrize("kind", ["FIFO", "folder", "socket", "device"])
@pytest.mark.parametrize("linked", [False, True])
def test_anything_else_is_refused_at_once(tmp_path: Path, kind: str, linked: bool) -> None:
    path = tmp_path / "odd"
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    if linked:
        (link := tmp_path / "link").symlink_to(path)
        path = link
    with pytest.raises(NotRegular):
        read_regular(path, 5, follow_links=linked)
