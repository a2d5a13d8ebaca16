"""LangGraph's source distributions, which contain its tests, and a Python environment to run these in.

Both are kept in ``.cache/langgraph-tests``; no part of them belongs to this repository.
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

CACHE = Path(__file__).resolve().parents[5] / ".cache/langgraph-tests"

#: Packages that LangGraph's tests need and this project's do not.
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
        version: Its version.
        least: The number of tests that must pass, so that a growing list of left-out tests is detected.
    """

    package: str
    version: str
    least: int

    @property
    def folder(self) -> Path:
        """The unpacked distribution."""
        return CACHE / f"{self.package.replace('-', '_')}-{self.version}"


def fetch(suite: Suite) -> Path:
    """Return the folder of a suite; download it from the package index if it is missing."""
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
    """Return a Python with the packages of the running one and the additional requirements."""
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
