"""Checks that the Locus SDK is installed: `need_locus`. Imports nothing from it."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec

from ..errors import LocusMissing
from ..extras import install_command

_INSTALL = install_command("locus")


def need_locus(what: str) -> None:
    """Raise if the Locus SDK is not installed.

    Args:
        what: The class, function or command that needs it, for the message.

    Raises:
        LocusMissing: There is no package ``locus``, or it is not the SDK: PyPI has an unrelated one of that name.
    """
    if "locus.memory" in sys.modules:
        return
    spec = find_spec("locus")
    if spec is None:
        raise LocusMissing(f"{what} needs the Locus SDK, which is not installed. Run {_INSTALL}.")
    found = spec.origin or "a folder of that name"
    # Not by the dotted name: that would import the package, and an unrelated package of this name may do anything.
    if PathFinder.find_spec("locus.memory", list(spec.submodule_search_locations or ())) is None:
        raise LocusMissing(
            f"{what} needs the Locus SDK, but `locus` is something else here: {found}. If it is PyPI's package of that "
            f"name, run pip uninstall locus, then {_INSTALL}; if it is a file of your own, rename it."
        )
