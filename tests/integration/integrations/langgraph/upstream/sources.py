"""LangGraph's source distributions, which hold its tests, and an environment to run these in.

Both are kept in ``.cache/langgraph-tests``, and nothing of them is part of this repository.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

CACHE = Path(__file__).resolve().parents[4] / ".cache/langgraph-tests"

#: What the tests need beside what this project's own tests have.
REQUIREMENTS = (
    "langgraph-checkpoint-sqlite==3.1.2",
    "aiosqlite",
    "sqlite-vec",
    "syrupy",
    "pytest-mock",
    "pycryptodome",
)


class Suite(NamedTuple):
    """The tests of one source distribution.

    Args:
        package: Its name.
        version: The version whose tests the savers are measured by.
        least: How many tests have to run, so that a list of what is left out cannot grow unnoticed.
    """

    package: str
    version: str
    least: int

    @property
    def folder(self) -> Path:
        """Where it is unpacked."""
        return CACHE / f"{self.package.replace('-', '_')}-{self.version}"


def fetch(suite: Suite) -> Path:
    """The folder of a suite, downloaded from the package index if need be."""
    if not (suite.folder / "tests").is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            wanted = f"{suite.package}=={suite.version}"
            _pip("download", "--no-deps", "--no-binary", suite.package, "--dest", folder, wanted)
            (archive,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            (Path(folder) / suite.folder.name).rename(suite.folder)
    return suite.folder


def interpreter() -> Path:
    """A Python that has what this one has, and the requirements."""
    folder = CACHE / "venv"
    python = folder / "bin/python"
    if not (folder / "complete").exists():
        venv.create(folder, clear=True)
        ours = sysconfig.get_paths()["purelib"]
        theirs = Path(sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"])
        (theirs / "beneath.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        _pip("install", "--no-deps", "--target", str(theirs), *REQUIREMENTS)
        (folder / "complete").touch()
    return python


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)
