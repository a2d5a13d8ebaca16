"""The command that installs an extra of this package, for messages: `install_command`."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """Return the command that installs an extra, wherever the package was installed from."""
    return f"pip install 'locus-mysql[{extra}]' (in a checkout of the repository: pip install '.[{extra}]')"
