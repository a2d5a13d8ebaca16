"""Sealed bytes are bound to their row, and every change of them is detected."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from locus_mysql import Encryption, MySQLConfig
from locus_mysql.errors import CorruptCheckpoint, CryptographyMissing, EncryptionError
from locus_mysql.families.checkpoints.statements.tables import checkpoint_schema
from locus_mysql.families.registry import families
from locus_mysql.runtime.sealing import (
    CHECKSUM_BYTES,
    OVERHEAD_BYTES,
    Sealing,
    of_text,
    refuse_clear_tables,
    sealed_by,
    to_text,
    unverified,
)

ENCRYPTION = Encryption(keys={"2026-11": bytes(32), "old": b"o" * 32}, active="2026-11")
ENCRYPTED, CLEAR = (Sealing(keys, "dicts").of("acme", "t") for keys in (ENCRYPTION, None))
BOTH = pytest.mark.parametrize("rows", [ENCRYPTED, CLEAR], ids=["encrypted", "clear"])

#: The parts of a place: family, tenant, owner, column and row. Then other places.
PLACE = ("dicts", "acme", ("t",), "payload", (b"token", b"base"))
OTHER_PLACES = [
    ("agents", *PLACE[1:]),
    ("dicts", "other", *PLACE[2:]),
    ("dicts", "acme", ("u",), *PLACE[3:]),
    ("dicts", "acmet", ("",), *PLACE[3:]),
    ("dicts", "acme", ("t", ""), *PLACE[3:]),
    (*PLACE[:3], "state", PLACE[4]),
    (*PLACE[:4], (b"other", b"base")),
    (*PLACE[:4], (b"token", b"other")),
    (*PLACE[:4], (b"token",)),
    (*PLACE[:4], (b"tokenbase",)),
    (*PLACE[:4], (b"base", b"token")),
]


def seal(rows: Sealing) -> bytes:
    return rows.seal(b"\x01", (b"con", memoryview(b"tent")), "payload", b"token", b"base")


@BOTH
def test_what_was_sealed_is_opened(rows: Sealing) -> None:
    assert rows.open(seal(rows), "Row", "payload", b"token", b"base") == (b"\x01", b"content")
    empty = rows.seal(b"\x02", (), "payload")
    assert rows.open(empty, "Row", "payload") == (b"\x02", b"")


def test_the_overhead_is_4_bytes_and_30_and_the_id_if_encrypted() -> None:
    assert len(seal(CLEAR)) == len(b"\x01content") + CHECKSUM_BYTES
    assert len(seal(ENCRYPTED)) == len(b"\x01content") + OVERHEAD_BYTES + len("2026-11") <= len(b"content") + 41
    assert sealed_by(seal(ENCRYPTED)) == "2026-11"
    assert sealed_by(seal(CLEAR)) is None
    assert seal(CLEAR)[:1] == b"\x01", "the format comes first"


@BOTH
def test_every_flipped_bit_is_detected(rows: Sealing) -> None:
    sealed = seal(rows)
    for index in range(len(sealed)):
        for bit in range(8):
            changed = bytearray(sealed)
            changed[index] ^= 1 << bit
            with pytest.raises((CorruptCheckpoint, EncryptionError)):
                rows.open(bytes(changed), "Row", "payload", b"token", b"base")


@pytest.mark.parametrize("encryption", [ENCRYPTION, None], ids=["encrypted", "clear"])
@pytest.mark.parametrize("place", OTHER_PLACES)
def test_bytes_of_another_place_are_refused(encryption: Encryption | None, place: Any) -> None:
    family, tenant, owner, column, row = place
    sealed = seal(Sealing(encryption, "dicts").of("acme", "t"))
    with pytest.raises(
        CorruptCheckpoint, match=r"The row cannot be (decrypted|read back): it(s bytes were| was) changed"
    ):
        Sealing(encryption, family).of(tenant, *owner).open(sealed, "The row", column, *row)


@pytest.mark.parametrize("place", OTHER_PLACES)
def test_readable_columns_of_another_place_have_another_checksum(place: Any) -> None:
    family, tenant, owner, column, row = place
    right = CLEAR.checksum("payload", b"token", b"base")
    assert right == ENCRYPTED.checksum("payload", b"token", b"base") < 2**32
    assert right != Sealing(None, family).of(tenant, *owner).checksum(column, *row)


def test_values_that_look_alike_have_different_checksums() -> None:
    values: list[tuple[Any, ...]] = [
        (),
        ("",),
        (None,),
        ("", None),
        (None, ""),
        ("a", "b"),
        ("ab", ""),
        ("ab",),
        ("~",),
    ]
    assert len({CLEAR.checksum("row", *some) for some in values}) == len(values)
    assert CLEAR.checksum("row", 7, "\ud800") == CLEAR.checksum("row", "7", b"\xed\xa0\x80")


def test_a_shift_turns_checksums_of_one_owner_into_those_of_another() -> None:
    other = CLEAR.of("acme", "u")
    shift = CLEAR.shift(other)
    assert CLEAR.checksum("row", "id") ^ shift == other.checksum("row", "id")
    sealed = seal(CLEAR)
    shifted = sealed[:1] + (int.from_bytes(sealed[1:5]) ^ shift).to_bytes(4) + sealed[5:]
    assert other.open(shifted, "Row", "payload", b"token", b"base").body == b"content"


def test_bytes_that_need_a_key_are_named_and_clear_bytes_are_refused_if_keys_are_given() -> None:
    with pytest.raises(EncryptionError, match="Row is encrypted with key '2026-11'; set encryption="):
        CLEAR.open(seal(ENCRYPTED), "Row", "payload", b"token", b"base")
    with pytest.raises(EncryptionError, match="Row is stored in clear text"):
        ENCRYPTED.open(seal(CLEAR), "Row", "payload", b"token", b"base")
    assert ENCRYPTED.verify(seal(CLEAR), "Row", "payload", b"token", b"base").body == b"content"


def test_while_encryption_is_switched_on_clear_bytes_are_read_if_they_fit_their_place() -> None:
    keys = Encryption(keys={"2026-11": bytes(32), "old": b"o" * 32}, active="2026-11", reads_clear=True)
    switching = Sealing(keys, "dicts").of("acme", "t")
    for rows in (CLEAR, ENCRYPTED, switching):
        assert switching.open(seal(rows), "Row", "payload", b"token", b"base").body == b"content"
    assert sealed_by(seal(switching)) == "2026-11"
    for stored, place in ((seal(CLEAR), b"other"), (seal(CLEAR)[:-1], b"token"), (b"", b"token")):
        with pytest.raises(CorruptCheckpoint, match="Row cannot be read back"):
            switching.open(stored, "Row", "payload", place, b"base")


def test_the_beginning_of_clear_bytes_is_read_without_comparing_the_checksum() -> None:
    assert unverified(seal(CLEAR)[:8], "Row") == (b"\x01", b"con")
    for stored in (b"", b"\x01", b"\x01abc"):
        with pytest.raises(CorruptCheckpoint, match="Row cannot be read back: it is"):
            unverified(stored, "Row")


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
    masked = ENCRYPTED.mask(number, b"token")
    assert masked != number
    assert -(2**63) <= masked < 2**63
    assert ENCRYPTED.mask(masked, b"token") == number
    assert (
        len(
            {
                ENCRYPTED.mask(number, b"token"),
                ENCRYPTED.mask(number, b"other"),
                ENCRYPTED.of("acme", "u").mask(number, b"token"),
            }
        )
        == 3
    )
    assert Sealing(None, "dicts").mask(number, b"token") == number


def test_digests_are_keyed_and_bound_to_the_row() -> None:
    digest = b"d" * 15
    own = ENCRYPTED.digests(digest, "row")
    assert [len(one) for one in own] == [15, 15]
    assert digest not in own
    others = [
        ENCRYPTED.digests(digest, "other"),
        ENCRYPTED.of("acme", "u").digests(digest, "row"),
        ENCRYPTED.digests(b"e" * 15, "row"),
    ]
    assert not set(own) & {one for some in others for one in some}
    rotated = Encryption(keys={"2026-11": bytes(32), "old": b"o" * 32}, active="old")
    assert Sealing(rotated, "dicts").of("acme", "t").digests(digest, "row") == own[::-1]
    assert Sealing(None, "dicts").digests(digest, "row") == [digest]


def test_encrypted_bytes_in_a_column_of_text_differ_from_json() -> None:
    sealed = seal(ENCRYPTED)
    assert of_text(to_text(sealed)) == sealed
    for text in ("{}", "[]", '"/"', "1", "-1", "true", "false", "null", "/no base64 ☕"):
        assert of_text(text) == text.encode()
        assert sealed_by(of_text(text)) is None
