"""The private server: accepted programs and their arguments, without starting one."""

import os
from pathlib import Path

import pytest

from ci import local_server
from ci.local_server import LocalServer, find_mysqld, refusal_of_version
from locus_mysql.errors import SetupError


@pytest.mark.parametrize(
    "text",
    [
        "/usr/sbin/mysqld  Ver 8.0.19 for Linux on x86_64 (MySQL Community Server - GPL)",
        "mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)",
        "/usr/sbin/mysqld  Ver 8.0.39-0ubuntu0.24.04.2 for Linux on x86_64 ((Ubuntu))",
        "/usr/sbin/mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28, Revision 47601f19)",
        "/usr/sbin/mysqld  Ver 8.4.3 for Linux on aarch64 (MySQL Community Server - GPL)",
        "/opt/homebrew/opt/mysql/bin/mysqld  Ver 9.0.1 for macos14.4 on arm64 (Homebrew)",
        "/srv/app/.cache/mysql/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
    ],
)
def test_mysql_from_8_0_19_on_is_accepted(text: str) -> None:
    assert refusal_of_version(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", "MariaDB"),
        ("/usr/sbin/mysqld  Ver 10.3.39-MariaDB for Linux on x86_64 (MariaDB Server)", "MariaDB"),
        ("mysqld  Ver 5.7.44 for Linux on x86_64 (MySQL Community Server (GPL))", "5.7.44"),
        ("mysqld  Ver 5.7.33-0ubuntu0.18.04.1 for Linux on x86_64 ((Ubuntu))", "5.7.33"),
        ("/usr/sbin/mysqld  Ver 8.0.18 for Linux on x86_64 (MySQL Community Server - GPL)", "8.0.18"),
        ("no such thing", "no version"),
        ("", "no version"),
    ],
)
def test_mariadb_and_older_servers_are_refused(text: str, reason: str) -> None:
    assert reason in (refusal_of_version(text) or "")


def write_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine without any server program; return the current folder."""
    here = tmp_path / "project/src"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "nowhere"))
    monkeypatch.delenv("LOCUS_MYSQL_TEST_MYSQLD", raising=False)
    monkeypatch.setattr(local_server, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(local_server, "__file__", os.fspath(tmp_path / "site-packages/locus_mysql/local_server.py"))
    return here


MYSQL = "echo 'mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)'"
MARIADB = "echo 'mysqld  Ver 10.11.6-MariaDB for Linux on x86_64'"


def test_without_a_server_program_the_error_lists_tried_places_and_remedies(empty_machine: Path) -> None:
    with pytest.raises(SetupError) as caught:
        find_mysqld()

    message = str(caught.value)
    assert f"{empty_machine}/.cache/mysql/bin/mysqld: not there" in message
    for way in ("mysql://", "docker run", "apt install", "brew install", "ci/mysql"):
        assert way in message


def test_a_mariadb_on_the_path_is_passed_over(
    empty_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "bin"))
    write_program(tmp_path / "bin/mysqld", MARIADB)
    fetched = write_program(empty_machine.parent / ".cache/mysql/bin/mysqld", MYSQL)

    assert find_mysqld() == fetched


def test_a_named_program_is_the_only_one(empty_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "bin"))
    write_program(tmp_path / "bin/mysqld", MYSQL)
    named = write_program(tmp_path / "named/mysqld", MYSQL)
    monkeypatch.setenv("LOCUS_MYSQL_TEST_MYSQLD", os.fspath(named))
    assert find_mysqld() == named

    write_program(named, MARIADB)
    with pytest.raises(SetupError, match="is MariaDB"):
        find_mysqld()


def test_a_program_that_another_user_put_into_a_parent_folder_is_not_run(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_program(empty_machine.parent / ".cache/mysql/bin/mysqld", MYSQL)
    if os.getuid() == 0:
        os.chown(program, 4321, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4321)

    with pytest.raises(SetupError):
        find_mysqld()


def arguments(**changes: object) -> list[str]:
    given: dict[str, object] = {
        "home": Path("/data"),
        "socket_path": Path("/data/mysql.sock"),
        "port": 4406,
        "init_file": Path("/data/first.sql"),
    }
    return local_server.server_arguments(Path("/bin/mysqld"), **{**given, **changes})  # type: ignore[arg-type]


def test_no_option_file_of_the_machine_is_read() -> None:
    assert arguments()[:2] == ["/bin/mysqld", "--no-defaults"]
    made = local_server.initialise_arguments(Path("/bin/mysqld"), home=Path("/d"), data_dir=Path("/d/new"))
    assert made[:2] == ["/bin/mysqld", "--no-defaults"]


def test_the_server_listens_on_this_machine_only() -> None:
    assert "--bind-address=127.0.0.1" in arguments()
    assert "--port=4406" in arguments()
    assert "--loose-mysqlx=OFF" in arguments()


def test_durability_is_not_weakened() -> None:
    assert not [one for one in arguments() if "flush" in one or "sync" in one or "doublewrite" in one]


@pytest.mark.parametrize(("user", "named"), [(0, True), (1000, False)])
def test_root_is_named_as_the_user_only_for_root(user: int, named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)

    assert ("--user=root" in arguments()) is named


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    with pytest.raises(SetupError, match="holds files that no server of locus-mysql made"):
        LocalServer(tmp_path, mysqld=Path("/bin/false")).start()

    assert [one.name for one in tmp_path.iterdir()] == ["thesis.txt"]
