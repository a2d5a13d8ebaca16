"""Which tokens there are, and whose they are: `Tokens`. Only their digests are kept."""

from __future__ import annotations

from .callers import Caller


class Tokens:
    """The tokens that a file or a text lists."""

    def find(self, secret: str) -> Caller | None:
        """Whose token this is; None if it is nobody's."""
        raise NotImplementedError
