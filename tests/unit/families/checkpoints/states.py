"""Hypothesis strategies of states, and encoding of states."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from locus_mysql.families.checkpoints.coding.codec import HashedLogs, encode, hash_logs
from locus_mysql.families.checkpoints.coding.delta import Delta, Lineage, encode_delta, seal_payload
from locus_mysql.runtime.sealing import Sealing

#: Seals the rows of the thread ``t`` of the tenant ``tenant``, without encryption.
CLEAR = Sealing(None, "agents").of("tenant", "t")

#: Any text Python can hold, lone surrogates included.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**100), 10**100),
    st.floats(),
    ANY_TEXT,
)

JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4), max_leaves=12
)

STATES = st.dictionaries(ANY_TEXT, JSON, max_size=6)


def delta_of(state: dict[str, Any], lineage: Lineage = ()) -> Delta:
    """Return the delta that is stored for a lasting state."""
    encoded = encode(state)
    return encode_delta(encoded, hash_logs(encoded, {}), lineage)


def stored_bytes(delta: Delta) -> bytes:
    """Return the bytes of the row of a delta."""
    return seal_payload(CLEAR, delta, bytes(16))


def hashed(state: dict[str, Any]) -> HashedLogs:
    return hash_logs(encode(state), {})


def same(one: Any, other: Any) -> bool:
    """Return whether two values are identical, with types, order of keys, NaN, and the sign of zero."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)
