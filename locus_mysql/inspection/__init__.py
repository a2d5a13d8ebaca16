"""`Inspector`: reads the stored data of every family, and compares states, for the command line and the pages.

Imports `families` and the layers below. It reads threads through the registry and the protocol of
`families/inspection/sources`; memories and sessions, which are no threads, by their families' own operations. Begin
with `inspector`; `differences` compares two states, `alignment` their lists.
"""

from .inspector import Inspector

__all__ = ["Inspector"]
