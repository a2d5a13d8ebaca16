"""The browser for tests of pages: headless Chromium with its own fonts, and the accessibility rules of axe.

    python -m ci.browser          fetches missing files, before tests need them

Chromium is Debian's, unpacked into ``.cache/chromium`` without root's rights, or the program that
``LOCUS_MYSQL_TEST_CHROMIUM`` names. It draws with the fonts that were unpacked beside it, so a page looks the same on
every machine. axe-core comes from npm, into ``.cache/axe``; only tests load it, no page does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from ci.debian_packages import (
    FetchFailed,
    Software,
    fetch,
    loader_of,
    make_folder,
    write_program,
)

CACHE = Path(__file__).resolve().parent.parent / ".cache"
CHOSEN = "LOCUS_MYSQL_TEST_CHROMIUM"
CHROMIUM = Software(
    "Chromium",
    ("chromium-headless-shell", "fonts-inter", "fonts-dejavu-core", "fonts-dejavu-mono"),
    130,
    # Packages for graphics cards, desktop sessions, or package configuration.
    r"perl|debconf|^libllvm|^libz3|^mesa-libgallium|^xkb-data|^x11-common|^pci\.ids|^libc-gconv-modules",
)
PROGRAM = "usr/lib/chromium/chromium-headless-shell"
PROCESS_S = 120.0

#: Programs of the machine, used if Debian's packages are not available. They draw with the machine's fonts.
OF_THE_MACHINE = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")

#: Arguments of Chromium. Under root it needs to run without a sandbox. Without a zygote it starts its child processes
#: by name; otherwise it would execute the dynamic loader, which is its own executable here.
ARGUMENTS = ("--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage", "--font-render-hinting=none")

FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">../usr/share/fonts</dir>
  <cachedir prefix="relative">../fontcache</cachedir>
  <alias binding="same"><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
  <alias binding="same"><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
  <alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <alias binding="same"><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""

Say = Callable[[str], None]


class BrowserMissing(Exception):
    """The browser or axe-core is not available here; the message gives the reason."""


def chromium(say: Say) -> Path:
    """Return the program; fetch it if it is missing.

    Raises:
        BrowserMissing: With the reasons.
    """
    chosen = os.environ.get(CHOSEN)
    if chosen:
        if not Path(chosen).exists():
            raise BrowserMissing(f"{CHOSEN} names {chosen}, which is not there")
        return Path(chosen)
    destination = CACHE / "chromium"
    program = destination / "bin/chromium"
    with once("chromium"):
        if not program.exists():
            try:
                fetch(CHROMIUM, destination, make_ready, say)
            except (FetchFailed, OSError) as error:
                there = next(filter(None, map(shutil.which, OF_THE_MACHINE)), None)
                if there is None:
                    raise BrowserMissing(f"Debian's packages: {error}. {CHOSEN}=/path/to/chromium names one") from None
                return Path(there)
    return program


def make_ready(prefix: Path) -> None:
    """Write a wrapper that starts Chromium with the unpacked libraries, and check that it draws a page."""
    if not (prefix / PROGRAM).exists():
        raise FetchFailed(f"the packages hold no {PROGRAM}")
    loader = loader_of(prefix)
    # Chromium searches for its data beside its executable, which is the loader here. So the loader is copied, too.
    shutil.copy2(prefix / loader, (prefix / PROGRAM).with_name("loader"))
    make_folder(prefix / "fontcache")
    (make_folder(prefix / "bin") / "fonts.conf").write_text(FONTS)
    libraries = str(Path(loader).parent)
    write_program(
        prefix / "bin/chromium",
        f"""\
#!/bin/sh
# Made by ci/browser.py: runs Debian's Chromium with the libraries and fonts that were unpacked beside it.
here=$(cd "$(dirname "$0")" && pwd -P) || exit
prefix=$(cd "$here/.." && pwd -P) || exit
export FONTCONFIG_FILE="$here/fonts.conf"
programs="$prefix/{Path(PROGRAM).parent}"
exec "$programs/loader" --library-path "$prefix/{libraries}:$prefix/{libraries}/pulseaudio:$prefix/usr/lib:$programs" \\
    "$programs/{Path(PROGRAM).name}" --browser-subprocess-path="$here/chromium" "$@"
""",
    )
    with tempfile.TemporaryDirectory() as profile:
        command = [
            str(prefix / "bin/chromium"),
            *ARGUMENTS,
            f"--user-data-dir={profile}",
            "--dump-dom",
            "data:text/html,<p>drawn",
        ]
        done = run(command, "the unpacked Chromium", FetchFailed)
    if "<p>drawn</p>" not in done:
        raise FetchFailed(f"the unpacked Chromium draws no page: {done[-500:]}")


def axe(say: Say) -> Path:
    """Return the script of axe-core; fetch it if it is missing.

    Raises:
        BrowserMissing: With the reasons.
    """
    destination = CACHE / "axe"
    script = destination / "axe.min.js"
    with once("axe"):
        if not script.exists():
            npm = shutil.which("npm")
            if npm is None:
                raise BrowserMissing("axe-core comes from npm, which is not on the PATH")
            say("fetching axe-core from npm")
            with tempfile.TemporaryDirectory() as folder:
                command = [npm, "pack", "--silent", f"--pack-destination={folder}", "axe-core@4"]
                run(command, "npm pack axe-core", BrowserMissing)
                (packed,) = Path(folder).glob("*.tgz")
                with tarfile.open(packed) as archive:
                    content = archive.extractfile("package/axe.min.js")
                    if content is None:
                        raise BrowserMissing("npm's package axe-core holds no axe.min.js")
                    text = content.read()
            make_folder(destination)
            unfinished = script.with_suffix(".new")
            unfinished.write_bytes(text)
            unfinished.rename(script)
    return script


class once:
    """Let only one of several processes fetch at a time."""

    def __init__(self, name: str) -> None:
        self.file = make_folder(CACHE) / f"{name}.lock"

    def __enter__(self) -> None:
        self.lock = self.file.open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.lock.close()


def run(command: list[str], what: str, failure: type[Exception]) -> str:
    """Run a command to its end; return its output."""
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments, no shell
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PROCESS_S
        )
    except subprocess.TimeoutExpired:
        raise failure(f"{what} did not end within {PROCESS_S:g} s") from None
    if done.returncode != 0:
        raise failure(f"{what} failed ({done.returncode}): {' / '.join(done.stderr.strip().splitlines()[-6:])}")
    return done.stdout


def main() -> None:
    """Fetch missing programs, and report those that are not available. Tests that need them report it again."""

    def say(text: str) -> None:
        print(f"ci/browser: {text}", file=sys.stderr)

    for get in (chromium, axe):
        try:
            get(say)
        except BrowserMissing as error:
            say(f"pages cannot be tested in a browser: {error}")


if __name__ == "__main__":
    main()
