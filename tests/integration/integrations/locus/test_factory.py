"""The factory takes the keywords of Locus' built-in factory, or refuses them with advice."""

from __future__ import annotations

from typing import Any

import pytest
from locus.memory import registry

from locus_mysql import MySQLCheckpointer, MySQLConfig, mysql_checkpointer, register
from locus_mysql.errors import ConfigError

from .agents import a_state, contents

pytestmark = pytest.mark.kept_tables("agents")


class TestFactory:
    @pytest.fixture
    def address(self, server_dsn: str, database: str) -> dict[str, Any]:
        config = MySQLConfig(dsn=server_dsn)
        (endpoint,) = config.endpoints
        return {
            "host": endpoint.host,
            "port": endpoint.port,
            "user": config.user,
            "password": config.password.get_secret_value(),
            "database": database,
        }

    async def test_the_checkpointer_accepts_the_keywords_of_the_built_in_factory(self, address: dict[str, Any]) -> None:
        async with mysql_checkpointer(**address, max_pool_size=3, driver="pymysql", keep_checkpoints=1) as one:
            assert one.config.pool_size == 3
            await one.save(a_state("x"), "t")
            assert contents(await one.load("t")) == ["x"]

    @pytest.mark.parametrize(
        ("option", "advice"),
        [
            ("table_name", "table_prefix"),
            ("min_pool_size", "leave it out"),
            ("charset", "utf8mb4"),
            ("collation", "code point"),
            ("autocommit", "leave it out"),
            ("use_pure", "driver="),
        ],
    )
    def test_options_of_the_built_in_factory_that_make_no_sense_here_are_refused_with_advice(
        self, option: str, advice: str
    ) -> None:
        with pytest.raises(ConfigError, match=advice):
            mysql_checkpointer(host="h", **{option: "value"})

    def test_an_unknown_option_is_refused_without_repeating_values(self) -> None:
        with pytest.raises(ConfigError, match="no such option") as caught:
            mysql_checkpointer(host="h", pasword="hunter2")
        assert "hunter2" not in str(caught.value)

    async def test_locus_finds_it_by_name_once_registered(
        self, address: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registry, "_CHECKPOINTERS", dict(registry._CHECKPOINTERS))
        register()
        database = address.pop("database")
        async with registry.get_checkpointer("mysql", **address, database=database) as one:  # type: ignore[attr-defined]
            assert isinstance(one, MySQLCheckpointer)
            await one.save(a_state("x"), "t")
        async with registry.get_checkpointer(f"mysql:{database}", **address) as other:  # type: ignore[attr-defined]
            assert other.config.database == database
            assert contents(await other.load("t")) == ["x"]
        assert isinstance(registry.get_checkpointer("mysql"), MySQLCheckpointer)
