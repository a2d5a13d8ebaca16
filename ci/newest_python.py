"""Python 3.14 for tests: Debian's, unpacked into ``.cache/python3.14`` without root's rights.

    python -m ci.newest_python          prints the path of an interpreter; fetches it if this machine has none

Stable distributions have older versions. With this one, tests find out what breaks in the newest version.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ci.debian_packages import FetchFailed, Software, checked, fetch, loader_of, write_program

VERSION = "3.14"
CACHE = Path(__file__).resolve().parent.parent / ".cache"
PYTHON = Software(
    f"Python {VERSION}",
    (f"python{VERSION}", f"python{VERSION}-venv", f"libpython{VERSION}-stdlib", "libstdc++6", "ca-certificates"),
    15,
    r"^(?!python3\.14|libpython3\.14).*(perl|debconf|media-types|tzdata|openssl$)",
)
PROGRAM = f"usr/bin/python{VERSION}"


def newest_python() -> Path:
    """Return the unpacked interpreter; fetch it if it is missing.

    Raises:
        FetchFailed: The packages are not available here.
    """
    destination = CACHE / f"python{VERSION}"
    program = destination / PROGRAM
    if not program.exists():
        fetch(PYTHON, destination, make_ready, lambda text: print(f"ci/newest_python: {text}", file=sys.stderr))
    return program


def make_ready(prefix: Path) -> None:
    """Put a wrapper, which starts Python with the unpacked libraries, in the program's place; check that it runs.

    Python finds its folders, and a virtual environment, from the name it was started with. So the wrapper stands where
    the program stood, and the loader passes its name on.
    """
    loader = loader_of(prefix)
    libraries = str(Path(loader).parent)
    program = prefix / PROGRAM
    program.rename(program.with_name(f"{program.name}.program"))
    write_program(
        program,
        f"""\
#!/bin/sh
# Made by ci/newest_python.py: runs Debian's Python with the libraries that were unpacked beside it.
prefix=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd -P) || exit
exec "$prefix/{loader}" --argv0 "$0" --library-path "$prefix/{libraries}:$prefix/usr/lib" \\
    "$prefix/{PROGRAM}.program" "$@"
""",
    )
    # ci/setup makes virtual environments with it: Debian's own ensurepip reads wheels below /usr.
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(program),
        "install",
        "--quiet",
        "--break-system-packages",
        "pip",
    ]
    checked(pip)
    checked([str(program), "-c", "import ssl, sqlite3, venv, pip"])


if __name__ == "__main__":
    try:
        print(newest_python())
    except FetchFailed as error:
        sys.exit(f"ci/newest_python: Python {VERSION} could not be had; put one on the PATH: {error}")
