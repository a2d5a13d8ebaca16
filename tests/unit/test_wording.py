"""Misspelt options, drivers and keys: the message suggests the known name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.drivers.interface import find_driver
from locus_mysql.errors import ConfigError
from locus_mysql.extras import CLIENT_LIBRARIES
from locus_mysql.wording import did_you_mean


@pytest.mark.parametrize(
    ("wrong", "suggested"),
    [
        (lambda: MySQLConfig(pool_sise=3), "pool_size"),
        (lambda: MySQLConfig(dsn="mysql://localhost/app?ssl_mod=REQUIRED"), "ssl_mode"),
        (lambda: MySQLConfig().for_store(tennant="acme"), "tenant"),
        (lambda: find_driver("mysqlconnector"), "mysql-connector"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(wrong: Callable[[], object], suggested: str) -> None:
    with pytest.raises(ConfigError, match=rf" Did you mean {suggested}\? "):
        wrong()


def test_a_name_that_resembles_none_gets_no_suggestion() -> None:
    assert did_you_mean("xyzzy", ["tenant"]) == ""
    with pytest.raises(ConfigError) as caught:
        MySQLConfig(xyzzy=1)
    assert "Did you mean" not in str(caught.value)


def test_a_name_of_a_million_characters_is_answered_at_once() -> None:
    assert did_you_mean("tenant" + "x" * 10**6, ["tenant"]) == ""


def test_editors_suggest_the_drivers_of_the_package() -> None:
    assert [*CLIENT_LIBRARIES] == [find_driver(name).name for name in CLIENT_LIBRARIES]
