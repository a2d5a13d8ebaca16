"""The keeper of an embedded server, with a pretended pylibseekdb: which files of a server are made again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from locus_mysql.engine import embedded_keeper

#: A server whose files may be marked: ``broken``, if it makes no tables, and ``rows``, if a table has a row.
PRETENDED = """
from pathlib import Path

class Server:
    def __init__(self, files):
        if (files / "half-made").exists():
            raise RuntimeError("open failed")
        self.files = files
        (files / "run").mkdir(exist_ok=True)

    def connect(self, **options): return self
    def cursor(self): return self
    def close(self): pass
    def connection_options(self): return {"unix_socket": "socket"}

    def execute(self, sql):
        if sql.startswith("CREATE TABLE") and (self.files / "broken").exists():
            raise RuntimeError("killed")
        self.found = []
        if (self.files / "rows").exists():
            self.found = [("locus", "t")] if "information_schema" in sql else [(1,)]

    def fetchall(self): return self.found

def open(db_dir): return Server(Path(db_dir))
"""


def keep(folder: Path, packages: Path) -> subprocess.CompletedProcess[str]:
    """Run a keeper whose program ends at once."""
    packages.mkdir(exist_ok=True)
    (packages / "pylibseekdb.py").write_text(PRETENDED)
    arguments = ["-S", "-P", embedded_keeper.__file__, str(folder), "locus", "1", str(packages)]
    return subprocess.run([sys.executable, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("marks", "stays"),
    [
        (["whole"], True),
        (["whole", "rows"], True),
        (["whole", "broken"], False),
        (["whole", "broken", "rows"], True),
    ],
    ids=["whole", "whole with rows", "broken", "broken with rows"],
)
def test_files_that_make_no_tables_are_made_again_if_they_hold_no_row(
    marks: list[str], stays: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "memory"
    (folder / "server").mkdir(parents=True)
    for mark in marks:
        (folder / "server" / mark).touch()
    done = keep(folder, tmp_path / "packages")
    assert json.loads(done.stdout), done.stderr
    assert (folder / "server/whole").exists() is stays
    assert not (folder / "unfinished").exists()


def test_files_whose_first_start_failed_are_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    (folder / "server").mkdir(parents=True)
    (folder / "server/half-made").touch()
    assert keep(folder, tmp_path / "packages").returncode == 1
    assert (folder / "server/half-made").exists()
    (folder / "unfinished").touch()
    assert json.loads(keep(folder, tmp_path / "packages").stdout)
    assert not (folder / "server/half-made").exists()
