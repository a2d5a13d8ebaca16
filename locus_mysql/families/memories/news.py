"""What a server says about the namespaces of a known range: `News`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

from ...drivers.interface import Row
from .vectors.table import VectorKey

#: Stamp and token of the last known write to each namespace, by its path.
Writes: TypeAlias = Mapping[bytes, tuple[int, bytes]]


class Scope(NamedTuple):
    """A namespace as it is now.

    Args:
        stamp: Of the last write to it.
        purged: Who has not looked since this stamp must read all anew.
        token: Of the last write.
        earlier: Of the write before.
    """

    stamp: int
    purged: int
    token: bytes
    earlier: bytes | None


@dataclass(slots=True)
class News:
    """What the rows of `VectorStatements.news` say, all of one moment.

    Args:
        scopes: The namespaces of the range by their paths.
        there: Those of the known tokens that are still found.
        changes: Codes that changed since, by path; None stands for one that is gone.
    """

    scopes: dict[bytes, Scope] = field(default_factory=dict)
    there: set[bytes] = field(default_factory=set)
    changes: dict[bytes, list[tuple[VectorKey, bytes | None]]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Row]) -> News:
        """The news of some rows."""
        news = cls()
        for row in rows:
            path, stamp, purged, token, earlier, key, place, code = row
            if path is None:
                news.there.add(cast(bytes, token))
            elif token is not None:
                news.scopes[cast(bytes, path)] = Scope(
                    cast(int, stamp), cast(int, purged), cast(bytes, token), cast("bytes | None", earlier)
                )
            else:
                changed = (cast(bytes, path), cast(bytes, key), cast(int, place))
                news.changes.setdefault(cast(bytes, path), []).append((changed, cast("bytes | None", code)))
        return news

    @property
    def writes(self) -> Writes:
        """The last writes, as a cache remembers them."""
        return {path: (scope.stamp, scope.token) for path, scope in self.scopes.items()}

    def different(self, known: Writes) -> list[bytes]:
        """Namespaces that are not as they were known."""
        return [path for path, write in self.writes.items() if known.get(path) != write]

    def must_be_read_anew(self, path: bytes, known: Writes) -> bool:
        """Whether changes since the known write do not tell all of a namespace.

        So it is if removals since were purged, or if the known write is not found any more: it is too old, or the
        server has lost it, and what this process knows of it with it.
        """
        if path not in known:
            return True
        stamp, token = known[path]
        now = self.scopes[path]
        return now.purged > stamp or (now.earlier != token and token not in self.there)
