"""The file of an export, in a folder to which other users may write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from locus_mysql.errors import UsageError
from locus_mysql.transfer.files import PartFile


def test_a_file_is_readable_only_by_its_owner_even_if_it_existed_before(tmp_path: Path) -> None:
    file, part = tmp_path / "threads.jsonl", tmp_path / "threads.jsonl.part"
    for path in (file, part):
        path.write_bytes(b"old\n")
        path.chmod(0o666)
    with PartFile(file) as writing:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        assert writing.read_from_start().read() == b"old\n"
        writing.truncate(0)
        writing.write(b"new\n")
        writing.finish()
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new\n", 0o600)


@pytest.mark.parametrize("kind", ["link", "dangling link", "second name", "FIFO", "folder"])
def test_a_part_that_was_planted_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    file, part, other = tmp_path / "threads.jsonl", tmp_path / "threads.jsonl.part", tmp_path / "other"
    other.write_bytes(b"of somebody else")
    other.chmod(0o644)
    if kind == "link":
        part.symlink_to(other)
    elif kind == "dangling link":
        part.symlink_to(tmp_path / "new")
    elif kind == "second name":
        part.hardlink_to(other)
    elif kind == "FIFO":
        os.mkfifo(part)
    else:
        part.mkdir()
    with pytest.raises(UsageError, match=r"threads\.jsonl\.part"):
        PartFile(file)
    assert (other.read_bytes(), stat.S_IMODE(other.stat().st_mode)) == (b"of somebody else", 0o644)
    assert not (tmp_path / "new").exists()
    assert part.is_symlink() or part.exists()


def test_a_link_under_the_files_own_name_is_replaced_and_not_followed(tmp_path: Path) -> None:
    file, other = tmp_path / "threads.jsonl", tmp_path / "other"
    other.write_bytes(b"of somebody else")
    file.symlink_to(other)
    with PartFile(file) as writing:
        writing.write(b"new\n")
        writing.finish()
    assert not file.is_symlink()
    assert (file.read_bytes(), other.read_bytes()) == (b"new\n", b"of somebody else")


def test_a_part_that_was_exchanged_meanwhile_gets_no_name(tmp_path: Path) -> None:
    file, part = tmp_path / "threads.jsonl", tmp_path / "threads.jsonl.part"
    with PartFile(file) as writing:
        writing.write(b"new\n")
        part.unlink()
        part.write_bytes(b"planted\n")
        with pytest.raises(UsageError, match="was replaced"):
            writing.finish()
    assert not file.exists()
