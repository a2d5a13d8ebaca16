"""Wheels of the checkout, and environments that contain only a wheel and its dependencies."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files from which a release is built, with an address as `ci/release` writes it."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("locus_mysql", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "ci").mkdir()
    shutil.copy(ROOT / "ci/sbom.cdx.json", copy / "ci")
    settings = copy / "pyproject.toml"
    settings.write_text(
        settings.read_text().replace("https://repository.invalid", "https://example.org/team/locus-mysql")
    )
    return copy


@pytest.fixture(scope="session")
def wheel(checkout: Path) -> Path:
    """The wheel as it is released."""
    return build(checkout, "build_wheel")


@pytest.fixture(scope="session")
def sdist(checkout: Path) -> Path:
    """The source distribution as it is released."""
    return build(checkout, "build_sdist")


@pytest.fixture(scope="session")
def editable_wheel(checkout: Path) -> Path:
    """Build the editable wheel that ``pip install -e`` installs."""
    return build(checkout, "build_editable")


def build(checkout: Path, hook: str) -> Path:
    """Call a hook of PEP 517 or 660 as pip does, with the hatchling that is here."""
    code = f"import sys; from hatchling import build; build.{hook}(sys.argv[1])"
    folder = checkout.with_name(f"{checkout.name}-{hook}")
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=checkout, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    python: Path
    packages: Path

    def run(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run its Python apart from the checkout and from the user's own packages."""
        return subprocess.run(
            [str(self.python), "-I", *arguments],
            cwd=self.packages.anchor,
            capture_output=True,
            text=True,
            timeout=timeout,
        )


@pytest.fixture
def make_environment(tmp_path: Path) -> Callable[..., Environment]:
    """``make_environment(wheel, *libraries)``: a new one with a wheel, its hard dependencies and these libraries."""

    def make(wheel: Path, *libraries: str) -> Environment:
        home = tmp_path / "environment"
        venv.create(home, symlinks=True)
        (packages,) = home.glob("lib/python3*/site-packages")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
        (info,) = packages.glob("locus_mysql-*.dist-info")
        for name in needed_by([Distribution.at(info)]) | needed_by(map(distribution, libraries)) | {*libraries}:
            link(distribution(name), packages)
        return Environment(home / "bin/python", packages)

    return make


def needed_by(installed: Iterable[Distribution]) -> set[str]:
    """The names of what some distributions depend on without extras, and what that depends on."""
    names: set[str] = set()
    for one in installed:
        for text in one.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                names |= {requirement.name} | needed_by([distribution(requirement.name)])
    return names


def link(installed: Distribution, packages: Path) -> None:
    """Make the packages installed here visible in another environment, without fetching them again."""
    for top in {Path(file.parts[0]) for file in installed.files or () if file.parts[0] not in {"..", "__pycache__"}}:
        there = packages / top
        if not there.exists():
            there.symlink_to(Path(str(installed.locate_file(top))))
