"""The namespaces that a statement is about: `Range`."""

from __future__ import annotations

from dataclasses import dataclass

from ..statement import Param


@dataclass(frozen=True, slots=True)
class Range:
    """A namespace, or all namespaces that begin with one.

    In a path, each label ends with a NUL, and no label contains one. So the paths that begin with a path are exactly
    the namespaces that begin with its labels, and they are one range of the primary key.

    Args:
        path: The namespace's path.
        exact: Whether the range is this namespace only, without those below.
    """

    path: bytes
    exact: bool = False

    def condition(self, alias: str) -> str:
        """Return the condition on a table's path, beginning with AND; empty for all namespaces."""
        if self.exact:
            return f" AND {alias}.path = %s"
        return f" AND {alias}.path >= %s AND {alias}.path < %s" if self.path else ""

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the condition."""
        if self.exact:
            return (self.path,)
        return (self.path, self.path[:-1] + b"\1") if self.path else ()

    def owned(self, alias: str) -> str:
        """Return the condition on a table's owner, which is tenant and path in one, beginning with WHERE."""
        return f" WHERE {alias}.owner = %s" if self.exact else f" WHERE {alias}.owner >= %s AND {alias}.owner < %s"

    def owned_params(self, tenant: str) -> tuple[Param, ...]:
        """Return the parameters of that condition."""
        owner = owner_of(tenant, self.path)
        return (owner,) if self.exact else (owner, owner[:-1] + b"\1")


def owner_of(tenant: str, path: bytes) -> bytes:
    """Return tenant and path in one, which sorts like the two; neither a tenant nor a label contains a NUL."""
    return tenant.encode() + b"\0" + path


def path_at(tenant: str) -> int:
    """Return the position of the path in an owner, counted from 1 as in SQL."""
    return len(tenant.encode()) + 2
