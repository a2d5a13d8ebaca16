"""Recognising the engine of a server whose greeting may be OceanBase's."""

from __future__ import annotations

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.drivers.interface import Result
from locus_mysql.drivers.wire import session
from locus_mysql.errors import UnsupportedServer


def test_oceanbase_gets_its_variant() -> None:
    assert session.variant([Result([("5.7.25-OceanBase-v4.3.5.3", "OceanBase 4.3.5.3")])]) is OCEANBASE


def test_an_old_mysql_with_the_same_greeting_is_refused() -> None:
    with pytest.raises(UnsupportedServer, match=r"5\.7\.25 is too old"):
        session.variant([Result([("5.7.25", "MySQL Community Server (GPL)")])])


def test_a_session_on_oceanbase_limits_every_statement() -> None:
    config = MySQLConfig(database="app", select_timeout_s=2.5)
    (limit,) = [one for one in session.setup(config, OCEANBASE) if "ob_query_timeout" in one.sql]
    assert "@@SESSION.ob_query_timeout = 2500000" in limit.sql
    assert not any("ob_query_timeout" in one.sql for one in session.setup(config))
