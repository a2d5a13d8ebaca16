"""The commit that `bench.compare` compares with, and the judgement."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench import compare

SLOW = compare.LIMIT + 0.01


def ratios(**medians: float) -> dict[str, dict[str, list[float]]]:
    return {name: {part: [0.5, middle, 2.0] for part in compare.PARTS} for name, middle in medians.items()}


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository whose second commit accepts figures, and whose third does not."""
    folder = tmp_path / "whole"
    (folder / "bench").mkdir(parents=True)
    (folder / "locus_mysql").mkdir()
    git(folder, "init", "--quiet")
    for number, name in enumerate(("locus_mysql/a.py", "bench/accepted.json", "locus_mysql/a.py")):
        (folder / name).write_text(str(number))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"commit {number}")
    return folder


def test_the_package_of_the_last_accepted_commit_is_taken(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "ROOT", repository)
    monkeypatch.setattr(compare, "PACKAGES", repository / ".cache")
    commit, folder = compare.package_of(compare.accepted_commit())
    assert commit == git(repository, "rev-parse", "HEAD~1")
    assert (folder / "locus_mysql/a.py").read_text() == "0"


def test_a_clone_without_the_history_is_refused_with_the_remedy(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shallow = repository.parent / "shallow"
    git(repository, "clone", "--quiet", "--depth", "1", repository.as_uri(), str(shallow))
    monkeypatch.setattr(compare, "ROOT", shallow)
    assert compare.main(["--dsn", "mysql://u:p@localhost/d"]) == 2
    assert "shallow clone" in (said := capsys.readouterr().err)
    assert "git fetch --unshallow" in said
    assert compare.main(["--dsn", "mysql://u:p@localhost/d", "missing"]) == 2
    assert capsys.readouterr().err == "compare: There is no commit missing.\n"


def test_only_a_workload_above_the_limit_is_slower() -> None:
    assert compare.slower(ratios(a=1.0, b=SLOW)) == ["b"]


@pytest.mark.parametrize(
    ("passes", "code", "named"),
    [
        ([ratios(a=1.0, b=1.0)], 0, None),
        ([ratios(a=SLOW, b=1.0), ratios(a=0.9, b=1.0)], 0, None),
        ([ratios(a=SLOW, b=SLOW), ratios(a=0.9, b=SLOW), ratios(a=0.9, b=SLOW)], 1, "b"),
        ([ratios(a=1.5), ratios(a=1.0), ratios(a=1.5)], 1, "a"),  # the second pass alone would end it
    ],
)
def test_what_is_slower_in_the_rounds_of_all_passes_fails(
    passes: list[dict[str, dict[str, list[float]]]],
    code: int,
    named: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    left = iter(passes)
    monkeypatch.setattr(compare, "package_of", lambda commit: (commit, tmp_path))
    monkeypatch.setattr(compare, "compare", lambda *arguments, **options: next(left))
    assert compare.main(["--dsn", "mysql://u:p@localhost/d", "HEAD"]) == code
    assert not list(left)
    said = capsys.readouterr().out
    assert said.count("at most 3 passes") == len(passes)
    assert (f"processor time: {named}\n" in said) if named else "processor time" not in said
