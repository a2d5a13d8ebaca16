"""The tests' server keeps its data in shared memory where that is available, safe and large enough."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ci import memory

GB = 2**30


@pytest.fixture
def shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated tmpfs of shared memory."""
    folder, proc = tmp_path / "shm", tmp_path / "proc"
    folder.mkdir()
    proc.mkdir()
    (proc / "mounts").write_text(f"/dev/sda / ext4 rw 0 0\ntmpfs {folder} tmpfs rw,nosuid 0 0\n")
    monkeypatch.setattr(memory, "SHARED_MEMORY", folder)
    monkeypatch.setattr(memory, "PROC", proc)
    return folder


@pytest.fixture
def room(shared_memory: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], bool]:
    """``room(free, available)`` returns whether these numbers of free bytes, in the folder and the machine, suffice."""

    def ask(free: float, available: float) -> bool:
        usage = type("Usage", (), {"free": free})
        monkeypatch.setattr(memory.shutil, "disk_usage", lambda _: usage)
        (memory.PROC / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable:    {int(available / 1024)} kB\n")
        return memory.has_room_for_a_server(shared_memory)

    return ask


def test_a_folder_of_the_user_s_own_is_made_and_found_again(shared_memory: Path) -> None:
    folder = memory.folder_in_memory()
    assert folder == shared_memory / f"locus-mysql-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert memory.folder_in_memory() == folder


def test_a_folder_on_disk_is_not_used(shared_memory: Path) -> None:
    (memory.PROC / "mounts").write_text(f"/dev/sda {shared_memory} ext4 rw 0 0\n")
    assert memory.folder_in_memory() is None
    (memory.PROC / "mounts").unlink()  # macOS
    assert memory.folder_in_memory() is None


def test_a_folder_replaced_by_another_user_is_not_used(shared_memory: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (shared_memory / f"locus-mysql-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert memory.folder_in_memory() is None


def test_another_user_s_folder_is_not_used(shared_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.os, "getuid", lambda: 4321)
    assert memory.folder_in_memory() is None


def test_there_must_be_room_in_the_folder_and_on_the_machine(room: Callable[[float, float], bool]) -> None:
    assert room(12 * GB, 12 * GB)
    assert not room(GB / 16, 12 * GB)
    assert not room(12 * GB, 3 * GB)
