"""Errors and arguments of the savers that involve no server."""

from __future__ import annotations

import pytest

from locus_mysql import Database, MySQLConfig
from locus_mysql.errors import ConfigError
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver


def test_each_names_the_other_where_it_cannot_be_used() -> None:
    with pytest.raises(ConfigError, match="or AsyncMySQLSaver"):
        MySQLSaver("mysql://user@localhost/app", driver="asyncmy")
    with pytest.raises(ConfigError, match="use MySQLSaver"), AsyncMySQLSaver("mysql://user@localhost/app"):
        pass


def test_a_saver_takes_the_options_of_a_store_beside_a_database_and_refuses_those_of_a_connection() -> None:
    with Database("mysql://user@localhost/app", driver="pymysql", tenant="acme") as database:
        assert MySQLSaver(database).config.tenant == "acme"
        assert MySQLSaver(database, tenant="umbrella", table_prefix="graphs_").config.table_prefix == "graphs_"
        with pytest.raises(ConfigError, match="pool_size"):
            MySQLSaver(database, pool_size=3)


def test_versions_go_on_from_any_saver_s() -> None:
    saver = MySQLSaver(MySQLConfig())
    assert saver.get_next_version(None, None) < saver.get_next_version("00000000000000000000000000000001.9", None)
    assert saver.get_next_version(41, None).startswith("00000000000000000000000000000042.")  # type: ignore[arg-type]
