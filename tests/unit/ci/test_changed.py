"""``ci/changed`` detects changes since the last landing, and reports "changed" where that is unknown."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

CHANGED = Path(__file__).resolve().parents[3] / "ci/changed"
AUTHOR = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"))
}
# Ignore settings of the machine and the checkout, as a hook sets GIT_DIR.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
ENVIRONMENT |= AUTHOR | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

Commit = Callable[[str], None]


def git(folder: Path, *arguments: str | Path) -> None:
    subprocess.run(["git", "-C", folder, *arguments], env=ENVIRONMENT, check=True, capture_output=True)


def commit(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    with (folder / name).open("a") as file:
        file.write("more\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", name)


def changed(folder: Path, *paths: str) -> bool:
    environment = {**ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(folder.parent)}  # tests' folders are in a checkout
    done = subprocess.run([CHANGED, *paths], cwd=folder, env=environment, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == b""
    return done.returncode == 0


def passed(folder: Path, *paths: str) -> None:
    subprocess.run([CHANGED, "--passed", *paths], cwd=folder, env=ENVIRONMENT, check=True)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with the folders bench and docs."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "--initial-branch=main")
    for name in ("docs/a", "bench/a"):
        commit(folder, name)
    return folder


@pytest.fixture
def clone(origin: Path, tmp_path: Path) -> Path:
    """A new clone of that repository, on a branch with a commit that changes docs."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", origin, folder)
    git(folder, "checkout", "-b", "topic")
    commit(folder, "docs/a")
    return folder


def test_a_commit_since_the_branch_left_main_is_a_change_of_its_paths_only(clone: Path) -> None:
    assert changed(clone, "docs")
    assert not changed(clone, "bench")
    assert changed(clone, "bench", "docs")


def test_commits_that_others_landed_are_no_change(clone: Path, origin: Path) -> None:
    commit(origin, "bench/a")
    git(clone, "fetch")
    assert not changed(clone, "bench")


def test_uncommitted_edits_are_a_change(clone: Path) -> None:
    (clone / "bench/a").write_text("other\n")
    assert changed(clone, "bench")
    git(clone, "add", "--all")
    assert changed(clone, "bench")


def test_a_new_file_is_a_change_unless_git_ignores_it(clone: Path) -> None:
    (clone / ".git/info/exclude").write_text("*.pyc\n")
    (clone / "bench/b.pyc").touch()
    assert not changed(clone, "bench")
    (clone / "bench/b").touch()
    assert changed(clone, "bench")


def test_on_main_the_last_landed_commit_is_a_change(clone: Path, origin: Path) -> None:
    git(clone, "checkout", "main")
    commit(origin, "bench/a")
    git(clone, "pull")
    assert changed(clone, "bench")
    assert not changed(clone, "docs")


def test_in_a_new_clone_of_main_the_change_is_unknown(clone: Path) -> None:
    git(clone, "checkout", "main")
    assert changed(clone, "bench")


def test_without_the_landed_commit_the_change_is_unknown(clone: Path, origin: Path, tmp_path: Path) -> None:
    git(clone, "remote", "remove", "origin")
    assert changed(clone, "bench")
    git(tmp_path, "clone", "--depth=1", origin.as_uri(), tmp_path / "shallow")
    git(tmp_path / "shallow", "checkout", "-b", "topic")
    assert changed(tmp_path / "shallow", "bench")


def test_outside_of_a_repository_the_change_is_unknown(tmp_path: Path) -> None:
    assert changed(tmp_path, "bench")


def test_paths_that_passed_unchanged_count_as_unchanged(clone: Path, tmp_path: Path) -> None:
    commit(clone, "bench/a")
    assert changed(clone, "bench")
    passed(clone, "bench")
    assert not changed(clone, "bench")
    assert changed(clone, "docs")
    assert changed(clone, "bench", "docs")
    git(clone, "add", "ci/passed")
    git(clone, "commit", "--message", "passed")
    git(tmp_path, "clone", "--depth=1", clone.as_uri(), tmp_path / "new")
    assert not changed(tmp_path / "new", "bench")
    (tmp_path / "new/bench/a").write_text("other\n")
    assert changed(tmp_path / "new", "bench")


@pytest.mark.parametrize("change", ["a", "b", "removed", "mode"])
def test_paths_that_changed_since_they_passed_count_as_changed(clone: Path, change: str) -> None:
    git(clone, "checkout", "main")
    passed(clone, "bench")
    assert not changed(clone, "bench")
    if change == "removed":
        (clone / "bench/c").touch()
        passed(clone, "bench")
        (clone / "bench/c").unlink()
    elif change == "mode":
        (clone / "bench/a").chmod(0o755)
    else:
        (clone / "bench" / change).write_text("other\n")
    assert changed(clone, "bench")


def test_each_set_of_paths_has_one_note_and_some_may_be_excluded(clone: Path) -> None:
    git(clone, "checkout", "main")
    all_but_one = ("bench", ":(exclude)bench/report")
    for paths in (("docs",), all_but_one, ("bench",)):
        passed(clone, *paths)
    before = (clone / "ci/passed").read_text()
    (clone / "bench/report").write_text("figures\n")
    assert not changed(clone, *all_but_one)
    passed(clone, *all_but_one)
    assert (clone / "ci/passed").read_text() == before
    assert changed(clone, "bench")
    commit(clone, "bench/a")
    assert changed(clone, *all_but_one)
    passed(clone, *all_but_one)
    assert not changed(clone, *all_but_one)
    assert [line.split("  ")[1] for line in (clone / "ci/passed").read_text().splitlines()] == [
        "bench",
        "bench :(exclude)bench/report",
        "docs",
    ]
