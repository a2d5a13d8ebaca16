"""Server programs from Debian's packages: unpacked into a separate folder, without root and without side effects.

The packages come from the Debian mirror that this machine's apt uses, with all dependencies including the C library, so
they run on every distribution that has apt. Needs Python 3.9 or later, and nothing else installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SUITE = "sid"  # the only suite that has MySQL: stable releases have MariaDB in its place
UNNEEDED_FOLDERS = (
    "etc",
    "var",
    "usr/lib/*/gconv",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/gcc",
    "usr/share/gdb",
)


class FetchFailed(Exception):
    """The packages are not available; the message gives the reason."""


@dataclass(frozen=True)
class Archive:
    """A Debian mirror as it is configured in this machine's apt."""

    uri: str
    signed_by: str | None  # a keyring's path or a key, as in deb822; None means apt's own keyrings


@dataclass(frozen=True)
class Software:
    """A request for packages."""

    name: str
    packages: tuple[str, ...]
    download_mb: int
    unneeded_packages: str = "perl"  # a regular expression; packages whose name it matches are not downloaded


def fetch(wanted: Software, destination: Path, make_ready: Callable[[Path], None], say: Callable[[str], None]) -> None:
    """Unpack ``wanted`` into ``destination``, which appears only after ``make_ready`` has checked it.

    Args:
        wanted: The packages.
        destination: The folder, replaced if it exists.
        make_ready: Is called with the folder of the unpacked files, to write wrappers and to start the
            programs; raises FetchFailed if they cannot be used.
        say: Shows progress.

    Raises:
        FetchFailed: No mirror of this machine's apt has the packages, or they do not run here.
    """
    for tool in ("apt-get", "apt-config", "dpkg"):
        if shutil.which(tool) is None:
            raise FetchFailed(f"{tool} is missing; this way works on Debian only")
    archives = debian_archives()
    if not archives:
        raise FetchFailed("/etc/apt names no Debian mirror (an entry with the component main)")
    failures = []
    for archive in archives:
        staging = destination.with_name(destination.name + ".new")
        shutil.rmtree(staging, ignore_errors=True)
        try:
            unpack(wanted, archive, staging, say)
            make_ready(staging)
        except FetchFailed as error:
            failures.append(f"from {without_credentials(archive.uri)}: {error}")
            continue
        finally:
            shutil.rmtree(staging / "apt", ignore_errors=True)
        shutil.rmtree(destination, ignore_errors=True)
        staging.rename(destination)
        say(f"{wanted.name} is unpacked in {destination}")
        return
    raise FetchFailed("\n  ".join(failures))


def unpack(wanted: Software, archive: Archive, staging: Path, say: Callable[[str], None]) -> None:
    """Download and unpack the packages of one mirror."""
    size = f"{wanted.download_mb} MB; once"
    say(f"fetching {wanted.name} from Debian's {SUITE} at {without_credentials(archive.uri)} ({size})")
    environment = {**os.environ, "APT_CONFIG": str(private_apt(archive, staging / "apt")), "LC_ALL": "C"}
    apt_get(["update"], environment, staging)
    plan = apt_get(["install", "--print-uris", "-y", *wanted.packages], environment, staging)
    packages = [name for name in planned_packages(plan) if not re.search(wanted.unneeded_packages, name)]
    downloads = make_folder(staging / "apt/downloads")
    say(f"downloading {len(packages)} packages")
    apt_get(["download", *packages], environment, downloads)
    say("unpacking")
    for package in sorted(downloads.glob("*.deb")):
        checked(["dpkg", "-x", str(package), str(staging)])
    for pattern in UNNEEDED_FOLDERS:
        for folder in staging.glob(pattern):
            shutil.rmtree(folder)


def loader_of(prefix: Path) -> str:
    """Return the path of the unpacked dynamic loader in ``prefix``."""
    loaders = sorted(prefix.glob("usr/lib/*-linux-*/ld-linux*.so.*"))
    if not loaders:
        raise FetchFailed("the packages hold no dynamic loader")
    return str(loaders[0].relative_to(prefix))


def write_program(file: Path, text: str) -> None:
    """Write an executable script."""
    make_folder(file.parent)
    file.write_text(text)
    file.chmod(0o755)


def debian_archives() -> list[Archive]:
    """List the Debian mirrors of this machine's apt, the most likely one first."""
    found: list[Archive] = []
    folder = Path("/etc/apt/sources.list.d")
    for file in [
        Path("/etc/apt/sources.list"),
        *sorted(folder.glob("*.list")),
        *sorted(folder.glob("*.sources")),
    ]:
        if file.is_file():
            parse = archives_of_deb822 if file.suffix == ".sources" else archives_of_one_line_entries
            found += parse(file.read_text(errors="replace"))
    # Other vendors' repositories have "main" as well, but their paths rarely end in "debian".
    return sorted(dict.fromkeys(found), key=lambda archive: not archive.uri.rstrip("/").endswith("debian"))


def archives_of_deb822(text: str) -> list[Archive]:
    """Read the archives of a ``*.sources`` file."""
    found = []
    uncommented = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", uncommented):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        wanted = "deb" in fields.get("types", "").split() and fields.get("enabled", "yes").lower() != "no"
        if wanted and is_debian(fields.get("suites", ""), fields.get("components", "")):
            found += [Archive(uri, fields.get("signed-by")) for uri in fields.get("uris", "").split()]
    return found


def archives_of_one_line_entries(text: str) -> list[Archive]:
    """Read the archives of a ``sources.list`` file."""
    found = []
    for options, uri, suite, components in re.findall(
        r"^[ \t]*deb[ \t]+(?:\[([^]\n]*)\][ \t]+)?(\S+)[ \t]+(\S+)([^#\n]*)", text, re.MULTILINE
    ):
        if is_debian(suite, components) and not uri.startswith("cdrom:"):
            keys = re.search(r"\bsigned-by=(\S+)", options)
            found.append(Archive(uri, keys[1].replace(",", " ") if keys else None))
    return found


def is_debian(suites: str, components: str) -> bool:
    """Return whether an entry may be of Debian's main archive, which has every suite."""
    return "main" in components.split() and any("security" not in suite for suite in suites.split())


def private_apt(archive: Archive, home: Path) -> Path:
    """Make a configuration of apt that reads one archive and writes below ``home`` only; return its file."""
    for folder in ("etc/sources", "etc/empty", "lists/partial", "archives/partial", "log"):
        make_folder(home / folder)
    (home / "status").touch()  # no package is installed here, so apt lists all dependencies
    source = f"Types: deb\nURIs: {archive.uri}\nSuites: {SUITE}\nComponents: main\n"
    if archive.signed_by:
        source += f"Signed-By: {archive.signed_by}\n"
    (home / "etc/sources/debian.sources").write_text(source)
    machine = checked(["apt-config", "dump"])
    # Proxies and certificates are the machine's; its hooks, pins and further sources are left out.
    transport = re.findall(r"^Acquire::(?:https?|Check-\w+|ForceIPv\d)\b.*;$", machine, re.MULTILINE)
    configuration = home / "apt.conf"
    configuration.touch(mode=0o600)  # a proxy's address may hold a password
    configuration.write_text(
        "\n".join(
            [
                *transport,
                'Acquire::Languages "none";',
                'Acquire::Retries "3";',
                'APT::Install-Recommends "false";',
                'APT::Sandbox::User "root";',  # do not switch to the user _apt, which only root can
                'Dir::Etc::Main "/dev/null";',
                f'Dir::Etc::Parts "{home}/etc/empty";',
                'Dir::Etc::Preferences "/dev/null";',
                f'Dir::Etc::PreferencesParts "{home}/etc/empty";',
                'Dir::Etc::SourceList "/dev/null";',
                f'Dir::Etc::SourceParts "{home}/etc/sources";',
                f'Dir::State "{home}";',
                f'Dir::State::Lists "{home}/lists";',
                f'Dir::State::status "{home}/status";',
                f'Dir::Cache "{home}";',
                f'Dir::Cache::Archives "{home}/archives";',
                f'Dir::Log "{home}/log";',
                "",
            ]
        )
    )
    return configuration


def planned_packages(plan: str) -> list[str]:
    """Read the packages' names in apt-get's output: 'URI' name_version_architecture.deb size hash."""
    return re.findall(r"^'[^']*' ([^_\s]+)_\S+\.deb ", plan, re.MULTILINE)


def apt_get(arguments: Sequence[str], environment: dict[str, str], folder: Path) -> str:
    """Run apt-get in ``folder``; return its output."""
    return checked(["apt-get", "-q", *arguments], environment, folder)


def checked(command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None) -> str:
    """Run a command; return its output, or raise FetchFailed with the end of its messages."""
    done = subprocess.run(  # noqa: S603 - apt and dpkg, with our own arguments
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        messages = [without_credentials(line) for line in (done.stderr or done.stdout).strip().splitlines()[-6:]]
        raise FetchFailed("\n    ".join([f"{' '.join(command[:3])} failed ({done.returncode}):", *messages]))
    return done.stdout


def without_credentials(text: str) -> str:
    """Remove user and password from URLs."""
    return re.sub(r"://[^/@\s]+@", "://", text)


def make_folder(folder: Path) -> Path:
    """Make a folder and its parents; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder
