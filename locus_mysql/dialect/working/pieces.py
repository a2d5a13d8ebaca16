"""Pieces that the statements of this family share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from ..checksums import checksum_sql, version_sql
from ..statement import Param
from ..template import placeholders

T = TypeVar("T")

#: The maximum number of names in a list of parameters; more are passed as one JSON array.
NAMES_LISTED = 100

#: Many names, as a table.
MANY = "JSON_TABLE(%s, '$[*]' COLUMNS (name VARCHAR(512) COLLATE utf8mb4_0900_bin PATH '$')) AS listed"

#: The kinds of entries.
VARIABLE, TASK, NOTE = 1, 2, 3

#: The microseconds for which the versions of deleted entries are kept.
DELETED_KNOWN_US = 3_600_000_000

_US_SINCE_1970 = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
_LEAST, _MOST = -(2**63), 2**63 - 1
_DECIMAL = "CAST(CONVERT(e.value USING ascii) AS DECIMAL(30))"

_SEALED = f"{checksum_sql(('s.tenant', 's.session_id'), ('e.value',), ('e.kind',))} ^ CRC32(e.name)"
_CHECKPOINT_SEAL = f"c.checksum ^ {version_sql('c.stamp')}"

#: Pieces by name. ``{SESSION}`` selects a session ``s`` by its key; ``{KNOWN}`` is its stamp, its time to live, and the
#: microseconds until it expires, negative if it has expired. ``{OF_SESSION}`` joins entries ``e`` to it, ``{OWN}``
#: where the table of sessions has no alias. ``{LIVE_ENTRY}``: an entry has a value, and has not expired. ``{SEAL}`` is
#: the checksum of an entry without its canonical form, which need not be read; ``{SOUND}``: the checksum of an
#: entry is right. ``{CHECKPOINT_SEAL}`` and ``{CHECKPOINT_SOUND}`` are the same for checkpoints, whose seal leaves out
#: the stamp. ``{US_SINCE_1970}`` is the server's clock in microseconds. ``{AT}`` is the time of the current write: the
#: session's stamp, or the clock if that is earlier, as after the clock was set back.
PIECES = {
    "MANY": MANY,
    "US_SINCE_1970": _US_SINCE_1970,
    "SESSION": "s.tenant = %s AND s.session_id = %s AND (s.expires_at IS NULL OR s.expires_at > UTC_TIMESTAMP(6))",
    "KNOWN": "s.stamp, s.ttl_us, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), s.expires_at)",
    "LIVE_ENTRY": "e.value IS NOT NULL AND (e.expires_at IS NULL OR e.expires_at > UTC_TIMESTAMP(6))",
    "OF_SESSION": "e.tenant = s.tenant AND e.sid = s.sid",
    "OWN": "e.tenant = {sessions}.tenant AND e.sid = {sessions}.sid",
    "DECIMAL": _DECIMAL,
    "NUMBER": f"LENGTH(e.value) <= 20 AND CONVERT(e.value USING ascii) REGEXP '^-?[0-9]{{1,19}}$'"
    f" AND {_DECIMAL} BETWEEN {_LEAST} AND {_MOST}",
    "LEAST": str(_LEAST),
    "MOST": str(_MOST),
    "DELETED_KNOWN_US": str(DELETED_KNOWN_US),
    "AT": f"LEAST(s.stamp, {_US_SINCE_1970})",
    "SEAL": "e.checksum ^ COALESCE(CRC32(e.canonical), 0)",
    "SOUND": f"e.checksum = {_SEALED} ^ COALESCE(CRC32(e.canonical), 0)",
    "CHECKPOINT_SEAL": _CHECKPOINT_SEAL,
    "CHECKPOINT_SOUND": (
        f"{_CHECKPOINT_SEAL} = {checksum_sql(('s.tenant', 's.session_id', 'c.checkpoint_id'), ('c.label',))}"
    ),
    "LEFT_US": "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), e.expires_at)",
}


def value_identity(kind: int, name: str) -> tuple[str, str]:
    """What the encrypted value of an entry is bound to within its session."""
    return str(kind), name


class SessionKey(NamedTuple):
    """The key of a session."""

    tenant: str
    session_id: str


class Named(NamedTuple):
    """Selects entries by name.

    Several names are joined as a table ``listed``, so that MySQL looks each up by key. For a condition with a list of
    names, it would read all entries of the session, unless the session is a constant.

    Args:
        table: A table to join before the entries; may be empty.
        table_params: Its parameters.
        condition: A condition on the entries ``e``.
        params: Its parameters.
    """

    table: str
    table_params: tuple[Param, ...]
    condition: str
    params: tuple[Param, ...]

    @property
    def pieces(self) -> Mapping[str, str]:
        """The table as the piece ``listed``, and the condition as the piece ``names``."""
        return {"listed": f"{self.table} STRAIGHT_JOIN" if self.table else "", "names": self.condition}


def named(names: Sequence[str], as_json: str) -> Named:
    """Select the entries with these names.

    Args:
        names: The names.
        as_json: The names as a JSON array, used instead if there are many.
    """
    if not names:
        return Named("", (), "FALSE", ())
    if len(names) == 1:
        return Named("", (), "e.name = %s", tuple(names))
    if len(names) > NAMES_LISTED:
        return Named(MANY, (as_json,), "e.name = listed.name", ())
    rows = placeholders(len(names), "ROW(%s)")
    return Named(f"(VALUES {rows}) AS listed (name)", tuple(names), "e.name = listed.name", ())
