"""Keys of encryption: their forms, their limits, and that nothing shows them."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import Encryption, MySQLConfig
from locus_mysql.errors import ConfigError, EncryptionError

KEY = bytes(range(32))
TEXT = base64.b64encode(KEY).decode()


@pytest.mark.parametrize("key", [KEY, bytearray(KEY), TEXT, base64.urlsafe_b64encode(KEY).decode()])
def test_a_key_is_32_bytes_or_base64_of_them(key: Any) -> None:
    assert Encryption(keys={"a": key}, active="a").key("a") == KEY


@pytest.mark.parametrize(
    ("keys", "active", "message"),
    [
        ({"a": KEY[:16]}, "a", "key 'a' has 16 bytes; AES-256 needs 32"),
        ({"a": "not base64!"}, "a", "key 'a' is not base64"),
        ({"a": 5}, "a", "must be bytes or base64 text, not int"),
        ({"a": KEY}, "b", "there is no key 'b'"),
        ({"a b": KEY}, "a b", "the id of a key must have 1 to 32 letters"),
        ({"a" * 33: KEY}, "a" * 33, "1 to 32"),
        ([KEY], "a", "keys must be a dict"),
    ],
)
def test_wrong_keys_are_refused(keys: Any, active: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Encryption(keys=keys, active=active)


def test_no_text_shows_a_key() -> None:
    encryption = Encryption(keys={"a": KEY}, active="a")
    config = MySQLConfig(encryption=encryption)
    shown = " ".join(map(repr, (encryption, config, config.model_dump()))) + str(config)
    assert TEXT not in shown
    assert repr(KEY) not in shown
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(encryption)


@pytest.mark.parametrize("text", ["a", f"a:{TEXT}", f"a={TEXT} a={TEXT}", "", "# only a comment", "reads_clear"])
def test_a_wrong_text_of_keys_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Encryption.from_text(text)
    assert TEXT not in str(caught.value)


def test_the_first_key_of_a_text_is_active(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# November\n2026-11={TEXT}\n2026-10={base64.b64encode(bytes(32)).decode()}  # old\n")
    encryption = Encryption.from_file(file)
    assert encryption.active == "2026-11"
    assert encryption.key("2026-10") == bytes(32)
    config = MySQLConfig.from_env({"LOCUS_MYSQL_ENCRYPTION": file.read_text()})
    assert config.encryption == encryption
    assert not config.search
    assert not encryption.reads_clear
    switching = Encryption.from_text(f"reads_clear 2026-11={TEXT}")
    assert (switching.active, switching.reads_clear) == ("2026-11", True)
    assert switching != Encryption.from_text(f"2026-11={TEXT}")
    assert repr(switching) == "Encryption(keys=…, active='2026-11', reads_clear=True)"
    with pytest.raises(ConfigError, match="cannot be read: FileNotFoundError"):
        Encryption.from_file(tmp_path / "none")


def test_a_dsn_holds_no_keys() -> None:
    with pytest.raises(ConfigError, match="cannot have encryption after") as caught:
        MySQLConfig(dsn=f"mysql://u@h/d?encryption=a%3D{TEXT}")
    assert TEXT not in str(caught.value)


def test_a_wrong_value_is_refused_without_repeating_it() -> None:
    with pytest.raises(ConfigError) as caught:
        MySQLConfig(encryption={"a": KEY})
    assert "must be an Encryption" in str(caught.value)
    assert repr(KEY) not in str(caught.value)


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(EncryptionError, match="Key 'b' is unknown; known are 'a'"):
        Encryption(keys={"a": KEY}, active="a").key("b")


def test_a_function_that_returns_a_wrong_key_is_reported() -> None:
    encryption = Encryption(keys=lambda key_id: b"short", active="a")
    with pytest.raises(ConfigError, match="key 'a' has 5 bytes"):
        encryption.key("a")
