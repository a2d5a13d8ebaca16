"""Looking inside: what is kept of every family, in the form in which the command line and the inspector show it."""

from .inspector import Inspector

__all__ = ["Inspector"]
