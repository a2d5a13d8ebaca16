"""Opening the sides of a copy by name, and hiding their passwords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.backends.file import FileCheckpointer
from locus.memory.backends.http import HTTPCheckpointer
from locus.memory.backends.memory import MemoryCheckpointer

from locus_mysql.config import hide
from locus_mysql.errors import UsageError
from locus_mysql.integrations.locus.transfer.checkpointers import read_metadata, time_of
from locus_mysql.integrations.locus.transfer.locations import Location, what_to_install


class KeyValue:
    """A backend of a user."""

    async def save(self, thread_id: str, data: dict[str, Any]) -> None: ...
    async def load(self, thread_id: str) -> dict[str, Any] | None: ...
    async def exists(self, thread_id: str) -> bool: ...


def make_backend(size: int = 1) -> KeyValue:
    """Return a backend from a user's function."""
    assert size == 3
    return KeyValue()


def make_nothing() -> None:
    """Return an object that is not a checkpointer."""


def test_names_open_what_they_name(tmp_path: Path) -> None:
    made: Any = Location(f"file:{tmp_path}", {"pretty": False}).checkpointer()
    assert isinstance(made, FileCheckpointer)
    assert (made.base_dir, made.pretty) == (tmp_path, False)
    assert isinstance(Location("memory").checkpointer(), MemoryCheckpointer)
    made = Location("http:http://localhost:1/api").checkpointer()
    assert isinstance(made, HTTPCheckpointer)
    assert made.base_url == "http://localhost:1/api"
    made = Location("redis://:secret@localhost:1/3", {"prefix": "mine:"}).checkpointer()
    assert isinstance(made, StorageBackendAdapter)
    assert made._backend.config.url == "redis://:secret@localhost:1/3"
    assert made._backend.config.prefix == "mine:"
    assert isinstance(Location(f"{__name__}:KeyValue").checkpointer(), StorageBackendAdapter)
    assert isinstance(Location(f"{__name__}:make_backend", {"size": 3}).checkpointer(), StorageBackendAdapter)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("nothing", {}, "names no checkpointer"),
        ("", {}, "names no checkpointer"),
        ("a b:c", {}, "names no checkpointer"),
        ("no_such_module:function", {}, "cannot be imported"),
        (f"{__name__}:none", {}, "cannot be imported"),
        (f"{__name__}:make_nothing", {}, "gives no Locus checkpointer, but NoneType"),
        ("file:somewhere", {"no_such": 1}, "cannot be opened"),
        ("redis://:sesame@localhost:1", {"no_such": "sesame"}, "cannot be opened"),
    ],
)
def test_invalid_names_are_reported(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        Location(name, options).checkpointer()
    assert "sesame" not in str(refused.value)


def test_names_and_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLD", "redis://:from-there@localhost:1")
    monkeypatch.setenv("TOKEN", "a token")
    location = Location("env:OLD", {"prefix": "p", "auth_token": "env:TOKEN"})
    assert location.name == "redis://:from-there@localhost:1"
    assert location.options == {"prefix": "p", "auth_token": "a token"}
    assert location.secrets >= {"a token", "from-there"}
    assert location.shown == "redis://***@localhost:1"
    with pytest.raises(UsageError, match="'MISSING'"):
        Location("env:MISSING")


def test_the_tables_of_this_package_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", "mysql://user:password@there/app")
    assert Location("mysql").config().database == "app"
    assert Location("mysql", tenant="acme").config().tenant == "acme"
    for name in ("mysql://user:password@host/other", "mysql:mysql://user:password@host/other"):
        config = Location(name, {"table_prefix": "x_"}, tenant="acme").config()
        assert (config.database, config.table_prefix, config.tenant) == ("other", "x_", "acme")
    config = Location("builtin-mysql://user:password@host/other?tenant=own", tenant="acme").config()
    assert (config.database, config.tenant) == ("other", "own")


def test_passwords_are_hidden_at_any_position() -> None:
    assert hide("cannot reach redis://me:pw@host and //x:y@z, said 's3cret!'", {"s3cret!", "x"}) == (
        "cannot reach redis://***@host and //***@z, said '***'"
    )


def test_metadata_of_checkpointers_is_read() -> None:
    time = time_of("2026-01-31T12:00:00+01:00")
    assert time is not None
    assert time.isoformat() == "2026-01-31T11:00:00+00:00"
    assert time_of("2026-01-31T11:00:00") == time
    assert [time_of(one) for one in (None, 3, "today", "0001-01-01T00:00:00")] == [None] * 4
    entry = {"checkpoint_id": "c", "metadata": {"a": 1}, "created_at": "2026-01-31T11:00:00"}
    assert read_metadata(entry, "c") == ({"a": 1}, time)
    assert read_metadata({"checkpoint_id": "c", "metadata": {}, "updated_at": "2026-01-31T11:00:00"}, "c") == ({}, time)
    assert read_metadata({"checkpoint_id": "mine", "user": 1}, "c") == ({"checkpoint_id": "mine", "user": 1}, None)


@pytest.mark.parametrize("name", ["redis://:pa/ssword@host:1/0", "postgresql://me:pa@ss/word@host/db"])
def test_a_password_that_should_have_been_percent_encoded_is_not_shown(name: str) -> None:
    location = Location(name)

    hidden = hide(
        f"{location.shown} cannot be reached with {name.partition('//')[2].partition(':')[2]}", location.secrets
    )

    assert "pa" not in hidden
    assert "word" not in hidden


def test_a_missing_package_is_named_with_its_install_command() -> None:
    error = ImportError("RedisBackend requires the 'redis' package. Install with: pip install locus[redis]")
    assert what_to_install(error).endswith("Install with: pip install 'locus-sdk[redis]'")
