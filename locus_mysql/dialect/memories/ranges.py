"""Which rows of a tenant a statement is about: `Range`."""

from __future__ import annotations

from dataclasses import dataclass

from ..statement import Param


@dataclass(frozen=True, slots=True)
class Range:
    """A namespace, or all namespaces that begin with one.

    A path ends each label with a NUL, and no label holds one: so the paths that begin with a path are exactly the
    namespaces that begin with its labels, and they are one range of the primary key.

    Args:
        path: The namespace's path.
        exact: Whether only this namespace is meant, without those below.
    """

    path: bytes
    exact: bool = False

    def condition(self, alias: str) -> str:
        """The condition on a table's path, beginning with AND; empty for all of the tenant."""
        if self.exact:
            return f" AND {alias}.path = %s"
        return f" AND {alias}.path >= %s AND {alias}.path < %s" if self.path else ""

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the condition."""
        if self.exact:
            return (self.path,)
        return (self.path, self.path[:-1] + b"\1") if self.path else ()
