"""Without a browser, the set-up of tests reports the reason and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci import browser
from ci.debian_packages import FetchFailed

log: list[str] = []


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(browser, "CACHE", tmp_path)
    monkeypatch.delenv(browser.CHOSEN, raising=False)


def test_a_browser_that_was_chosen_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.touch()
    monkeypatch.setenv(browser.CHOSEN, str(program))
    assert browser.chromium(log.append) == program


def test_a_chosen_browser_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browser.CHOSEN, "/nowhere/chromium")
    with pytest.raises(browser.BrowserMissing, match="/nowhere/chromium, which is not there"):
        browser.chromium(log.append)


def test_without_debian_packages_the_installed_browser_is_used_or_the_reason_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise FetchFailed("apt-get is missing")

    monkeypatch.setattr(browser, "fetch", fail)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(browser.BrowserMissing, match=r"apt-get is missing.*LOCUS_MYSQL_TEST_CHROMIUM="):
        browser.chromium(log.append)
    program = tmp_path / "chromium-browser"
    program.touch(mode=0o755)
    assert browser.chromium(log.append) == program


def test_without_npm_there_are_no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(browser.BrowserMissing, match="npm"):
        browser.axe(log.append)


def test_a_program_that_hangs_or_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(browser.BrowserMissing, match=r"It failed \(3\): no"):
        browser.run(["/bin/sh", "-c", "echo no >&2; exit 3"], "It", browser.BrowserMissing)
    monkeypatch.setattr(browser, "PROCESS_S", 0.01)
    with pytest.raises(browser.BrowserMissing, match="did not end"):
        browser.run(["/bin/sleep", "60"], "It", browser.BrowserMissing)
