"""`Inspector`: reads the stored data of every family, and compares states, for the command line and the pages.

Imports `families` and the layers below, and reads families only through the registry and the protocols of
`families/inspection/sources`. Begin with `inspector`; `differences` compares two states, `alignment` their lists.
"""

from .inspector import Inspector

__all__ = ["Inspector"]
