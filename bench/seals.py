"""SQL that seals rows which a measurement fills in by copying others; the package itself computes no seal in SQL."""

from __future__ import annotations

from locus_mysql.dialect.resealing import shifted

#: The family of the states of `CheckpointStore`, and that of agents.
DICTS, AGENTS = "dicts", "agents"


def row_seal(alias: str, family: str = DICTS) -> str:
    """Return the expression of the right seal of a checkpoint's row; see `row_seal` of the package."""
    metadata = f"IF({alias}.metadata IS NULL, '~', {_part(f'{alias}.metadata')})"
    row = f"CONCAT('3:row', {_part(f'{alias}.checkpoint_id')}, '16:', {alias}.token, {metadata})"
    return f"CRC32({row}) ^ {_owner(family, f'{alias}.tenant', f'{alias}.thread_id')}"


def moved_payload(alias: str, thread_id: str, family: str = DICTS) -> str:
    """Return the expression of a row's payload, sealed for the thread of another id."""
    tenant = f"{alias}.tenant"
    shift = f"{_owner(family, tenant, f'{alias}.thread_id')} ^ {_owner(family, tenant, thread_id)}"
    return shifted(f"{alias}.payload").replace(":shift", shift)


def _owner(family: str, tenant: str, thread_id: str) -> str:
    return f"CRC32(CONCAT('{len(family)}:{family}', {_part(tenant)}, {_part(thread_id)}))"


def _part(value: str) -> str:
    return f"CONCAT(LENGTH({value}), ':', {value})"
