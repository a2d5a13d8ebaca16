"""Sealed bytes are bound to their row, and every change of them is detected."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from locus_mysql import Encryption, MySQLConfig
from locus_mysql.dialect.checkpoints.tables import checkpoint_schema
from locus_mysql.errors import CryptographyMissing, DecryptionFailed, EncryptionError
from locus_mysql.families.registry import families
from locus_mysql.runtime.sealing import OVERHEAD_BYTES, Sealing, of_text, refuse_clear_tables, sealed_by, to_text

ENCRYPTION = Encryption(keys={"2026-11": bytes(32), "old": b"o" * 32}, active="2026-11")
ROWS = Sealing(ENCRYPTION, "dicts").of("acme", "t")
SEALED = ROWS.seal(b"content", "payload", b"token")


def test_the_overhead_is_30_bytes_and_the_id() -> None:
    assert len(SEALED) == len(b"content") + OVERHEAD_BYTES + len("2026-11") <= len(b"content") + 40
    assert sealed_by(SEALED) == "2026-11"
    assert ROWS.open(SEALED, "Row", "payload", b"token") == b"content"


@pytest.mark.parametrize("index", range(len(SEALED)))
def test_every_flipped_bit_is_detected(index: int) -> None:
    for bit in range(8):
        changed = bytearray(SEALED)
        changed[index] ^= 1 << bit
        with pytest.raises((DecryptionFailed, EncryptionError)):
            ROWS.open(bytes(changed), "Row", "payload", b"token")


@pytest.mark.parametrize("length", range(1, len(SEALED)))
def test_bytes_that_were_cut_short_are_detected(length: int) -> None:
    with pytest.raises((DecryptionFailed, EncryptionError)):
        ROWS.open(SEALED[:length], "Row", "payload", b"token")


@pytest.mark.parametrize(
    ("family", "tenant", "owner", "column", "row"),
    [
        ("agents", "acme", ("t",), "payload", b"token"),
        ("dicts", "other", ("t",), "payload", b"token"),
        ("dicts", "acme", ("u",), "payload", b"token"),
        ("dicts", "acmet", ("",), "payload", b"token"),
        ("dicts", "acme", ("t", ""), "payload", b"token"),
        ("dicts", "acme", ("t",), "state", b"token"),
        ("dicts", "acme", ("t",), "payload", b"other"),
    ],
)
def test_bytes_of_another_place_do_not_decrypt(
    family: str, tenant: str, owner: tuple[str, ...], column: str, row: bytes
) -> None:
    with pytest.raises(DecryptionFailed, match="The row cannot be decrypted"):
        Sealing(ENCRYPTION, family).of(tenant, *owner).open(SEALED, "The row", column, row)


def test_without_keys_nothing_changes_and_sealed_bytes_are_named() -> None:
    off = Sealing(None, "dicts").of("acme", "t")
    assert off.seal(b"content", "payload", b"token") == b"content"
    assert off.open(b"content", "Row", "payload", b"token") == b"content"
    with pytest.raises(EncryptionError, match="Row is encrypted with key '2026-11'; set encryption="):
        off.open(SEALED, "Row", "payload", b"token")


def test_a_family_that_does_not_encrypt_is_refused() -> None:
    config = MySQLConfig(encryption=ENCRYPTION)
    for family in families():
        schema = family.schema(config)
        if schema.encrypts:
            refuse_clear_tables(config, schema)
        else:
            with pytest.raises(EncryptionError, match=f"family {schema.family!r} do not support encryption"):
                refuse_clear_tables(config, schema)
            refuse_clear_tables(MySQLConfig(), schema)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return given(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CryptographyMissing, match=r"pip install 'locus-mysql\[encryption\]'"):
        refuse_clear_tables(
            MySQLConfig(encryption=ENCRYPTION), checkpoint_schema("l_", "dicts", search=False, search_parser="default")
        )


@pytest.mark.parametrize("number", [0, 1, -1, 42, 2**63 - 1, -(2**63)])
def test_a_masked_number_is_hidden_and_returned_by_the_same_key_and_token(number: int) -> None:
    masked = ROWS.mask(number, b"token")
    assert masked != number
    assert -(2**63) <= masked < 2**63
    assert ROWS.mask(masked, b"token") == number
    assert (
        len({ROWS.mask(number, b"token"), ROWS.mask(number, b"other"), ROWS.of("acme", "u").mask(number, b"token")})
        == 3
    )
    assert Sealing(None, "dicts").mask(number, b"token") == number


def test_digests_are_keyed_and_bound_to_the_row() -> None:
    digest = b"d" * 15
    own = ROWS.digests(digest, "row")
    assert [len(one) for one in own] == [15, 15]
    assert digest not in own
    others = [
        ROWS.digests(digest, "other"),
        ROWS.of("acme", "u").digests(digest, "row"),
        ROWS.digests(b"e" * 15, "row"),
    ]
    assert not set(own) & {one for some in others for one in some}
    rotated = Encryption(keys={"2026-11": bytes(32), "old": b"o" * 32}, active="old")
    assert Sealing(rotated, "dicts").of("acme", "t").digests(digest, "row") == own[::-1]
    assert Sealing(None, "dicts").digests(digest, "row") == [digest]


def test_encrypted_bytes_in_a_column_of_text_differ_from_json() -> None:
    assert of_text(to_text(SEALED)) == SEALED
    for text in ("{}", "[]", '"/"', "1", "-1", "true", "false", "null", "/no base64 ☕"):
        assert of_text(text) == text.encode()
        assert sealed_by(of_text(text)) is None
