"""The contents of a release, which works where only its dependencies are installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import locus_mysql
from locus_mysql.extras import install_command

from ..conftest import MakeConfig
from .conftest import ROOT, Environment

pytestmark = pytest.mark.slow


def test_a_wheel_holds_what_users_need_and_no_server(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = ROOT / "locus_mysql"
    modules = {str(path.relative_to(ROOT)) for path in package.rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert "locus_mysql/py.typed" in names


def test_a_source_distribution_installs_what_the_wheel_holds(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    for built, folder in ((wheel, "of-wheel"), (sdist, "of-sdist")):
        done = subprocess.run(
            [*pip, f"--target={tmp_path / folder}", str(built)], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    of_wheel, of_sdist = (
        {
            str(path.relative_to(tmp_path / folder)): path.read_bytes()
            for path in (tmp_path / folder / "locus_mysql").rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        for folder in ("of-wheel", "of-sdist")
    )
    assert of_wheel == of_sdist
    assert "locus_mysql/py.typed" in of_wheel
    assert (tmp_path / "of-sdist/bin/locus-mysql").exists()


def test_links_and_pictures_of_the_readme_lead_to_the_repository(wheel: Path) -> None:
    text = content_of(wheel, "METADATA")
    assert "](https://example.org/team/locus-mysql/blob/HEAD/docs/comparison.md)" in text
    assert "](https://example.org/team/locus-mysql/raw/HEAD/docs/images/inspector-thread.png)" in text
    assert re.findall(r"\]\((?!https://)", text) == []
    assert "Project-URL: Repository, https://example.org/team/locus-mysql\n" in text
    assert "Description-Content-Type: text/markdown" in text


def test_a_wheel_holds_a_bill_of_materials(wheel: Path) -> None:
    bill = json.loads(content_of(wheel, "sboms/sbom.cdx.json"))
    text = content_of(wheel, "METADATA")
    assert f"\nVersion: {bill['metadata']['component']['version']}\n" in text
    needed = {
        line.split()[1].partition(">")[0] for line in text.splitlines() if re.fullmatch(r"Requires-Dist: [^;]+", line)
    }
    assert {component["name"] for component in bill["components"]} == needed


def test_a_source_distribution_holds_tests_and_changelog(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tests/integration/packaging/test_wheel.py", "CHANGELOG.md", "LICENSE"} <= names


def content_of(wheel: Path, file: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(f".dist-info/{file}"))
        return archive.read(name).decode()


SAVE_AND_LOAD = """
import sys
from locus_mysql import SyncCheckpointStore
with SyncCheckpointStore(sys.argv[1], driver="pymysql", pool_size=1) as store:
    store.save("t", {"a": [1]}, metadata={"b": 2})
    assert store.load("t") == {"a": [1]}
    assert [found["thread_id"] for found in store.query_by_metadata("b", 2)] == ["t"]
assert not {"locus", "mysql", "aiomysql", "asyncmy", "cryptography"} & {*sys.modules}
print("done")
"""


def test_a_wheel_saves_and_loads_with_pymysql_and_its_hard_dependency_alone(
    wheel: Path, make_environment: Callable[..., Environment], make_config: MakeConfig, server_dsn: str, database: str
) -> None:
    environment = make_environment(wheel, "pymysql")
    address, _, _ = server_dsn.partition("?")
    dsn = f"{address.rpartition('/')[0]}/{database}"
    done = environment.run("-c", SAVE_AND_LOAD, dsn)
    assert done.stdout == "done\n", done.stderr


OF_LOCUS = [
    "MySQLCheckpointer",
    "MySQLMemory",
    "SyncMySQLCheckpointer",
    "SyncMySQLMemory",
    "mysql_checkpointer",
    "register",
]

IMPORT_ALL = """
from locus_mysql import *
print(" ".join(sorted(name for name in globals() if not name.startswith("__"))))
"""


def test_without_locus_all_other_names_can_be_imported_at_once(
    wheel: Path, make_environment: Callable[..., Environment]
) -> None:
    done = make_environment(wheel, "pymysql").run("-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    names = {*done.stdout.split()}
    assert names == {*locus_mysql.__all__} - {*locus_mysql._OF_LOCUS, "__version__"}
    assert {*OF_LOCUS} <= {*locus_mysql.__all__} - names


NAME_THE_EXTRA = """
import sys, locus_mysql
for name in sys.argv[1:]:
    try:
        getattr(locus_mysql, name)
    except locus_mysql.LocusMySQLError as error:
        assert isinstance(error, ImportError)
        print(error)
"""


def test_without_locus_what_needs_it_names_the_extra(wheel: Path, make_environment: Callable[..., Environment]) -> None:
    environment = make_environment(wheel, "pymysql")
    outcome = environment.run("-c", NAME_THE_EXTRA, *OF_LOCUS)
    assert outcome.stdout.splitlines() == [
        f"locus_mysql.{name} needs the Locus SDK, which is not installed. Run {install_command('locus')}."
        for name in OF_LOCUS
    ], outcome.stderr
    done = environment.run(
        "-m", "locus_mysql", "copy", "--from", "builtin-mysql", "--to", "mysql://root@127.0.0.1:1/app"
    )
    assert done.returncode == 1
    assert "pip install 'locus-mysql[locus]'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("stranger", ["locus.py", "locus/__init__.py"])
def test_an_unrelated_package_named_locus_is_not_mistaken_for_it(
    wheel: Path, make_environment: Callable[..., Environment], stranger: str
) -> None:
    environment = make_environment(wheel)
    file = environment.packages / stranger
    file.parent.mkdir(exist_ok=True)
    file.write_text("raise SyntaxError('print is a statement')")
    outcome = environment.run("-c", NAME_THE_EXTRA, *OF_LOCUS).stdout.splitlines()
    assert len(outcome) == len(OF_LOCUS)
    for line in outcome:
        assert f"`locus` is something else here: {file}." in line
        assert "pip uninstall locus, then pip install 'locus-mysql[locus]'" in line


@pytest.mark.slow
def test_type_checkers_see_an_editable_install(
    editable_wheel: Path, make_environment: Callable[..., Environment], tmp_path: Path
) -> None:
    environment = make_environment(editable_wheel)
    (tmp_path / "snippet.py").write_text(
        "from typing import assert_type\n"
        "from locus_mysql import MySQLConfig\n"
        'assert_type(MySQLConfig(dsn="mysql://localhost/app").port, int)\n'
    )
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    mypy = [sys.executable, "-m", "mypy", f"--python-executable={environment.python}"]
    cache = f"--cache-dir={ROOT / '.cache/mypy-of-tests'}"
    done = subprocess.run(
        [*mypy, "--strict", cache, "snippet.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
