"""Options from a DSN, from keywords beside it, and from the environment."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from locus_mysql.config import MySQLConfig
from locus_mysql.errors import ConfigError

SECRET = "s3cr3t-Pa55"


def refused(**options: Any) -> str:
    """Return the message that refuses these options."""
    with pytest.raises(ConfigError) as caught:
        MySQLConfig(**options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("dsn", "options"),
    [
        (
            "mysql://agent:pw@db.example.com:3307/app",
            {"host": "db.example.com", "port": 3307, "user": "agent", "password": "pw", "database": "app"},
        ),
        ("mysql:///app", {"database": "app"}),
        (
            "mysql://us%40er:p%3A%2F%3F%23%5B%5D%40%25%2B%20%E6%9D%B1@host/my%2Dapp?tenant=a%26b%3Dc%40d",
            {"host": "host", "user": "us@er", "password": "p:/?#[]@%+ 東", "database": "my-app", "tenant": "a&b=c@d"},
        ),
        ("mysql://a+b:c+d@h/db?tenant=e+f", {"host": "h", "user": "a+b", "password": "c+d", "tenant": "e+f"}),
        (
            "mysql://h/db?pipeline=false&pool_size=3&ttl_s=1.5&search=0&ddl_mode=off&compression=none",
            {"host": "h", "pool_size": 3, "ttl_s": 1.5, "ddl_mode": "off", "compression": "none"}
            | dict.fromkeys(("pipeline", "search"), False),
        ),
        ("mysql://root@/db?unix_socket=/run/my.sock", {"unix_socket": "/run/my.sock"}),
        ("mysql:///db?hosts=a,b:3307", {"hosts": ("a", "b:3307")}),
        ("mysql://root@[::1]:3307/db", {"host": "[::1]", "port": 3307}),
        (SecretStr("mysql://u:pw@h/db\n"), {"host": "h", "user": "u", "password": "pw"}),
    ],
    ids=str,
)
def test_a_dsn_has_the_options_that_keywords_have(dsn: Any, options: dict[str, Any]) -> None:
    found, expected = MySQLConfig(dsn=dsn), MySQLConfig(**{"database": "db", **options})
    assert found.endpoints == expected.endpoints
    assert found.model_copy(update={"host": expected.host}) == expected


@pytest.mark.parametrize("dsn", ["mysql://", "mysql://u:secret@localhost", "mysql:///", "mysql://localhost/?port=1"])
def test_a_dsn_without_a_database_is_refused_unless_it_is_given(dsn: str) -> None:
    with pytest.raises(ConfigError, match=r"names no database.* give database=") as caught:
        MySQLConfig(dsn=dsn)
    assert "secret" not in str(caught.value)
    assert MySQLConfig(dsn=dsn, database="app").database == "app"
    for environment, options in [
        ({}, {"dsn": dsn}),
        ({"LOCUS_MYSQL_DSN": dsn}, {}),
        ({"LOCUS_MYSQL_DSN": dsn}, {"user": "a"}),
    ]:
        with pytest.raises(ConfigError, match="names no database"):
            MySQLConfig.from_env(environment, **options)
        assert MySQLConfig.from_env({**environment, "LOCUS_MYSQL_DATABASE": "app"}, **options).database == "app"
        assert MySQLConfig.from_env(environment, **options, database="app").database == "app"


@pytest.mark.parametrize(
    ("dsn", "named"),
    [
        ("", "mysql://"),
        ("host/db", "mysql://"),
        ("postgresql://h/db", "mysql://"),
        ("mysql://h:port/db", "port"),
        ("mysql://h:99999/db", "port"),
        ("mysql://[::1/db", "malformed"),
        ("mysql://h1,h2/db", "host"),
        ("mysql://h/db#x", "%23"),
        ("mysql://h/a/b", "database"),
        ("mysql://h/db?", None),
        ("mysql://h/db?pool_size", "option=value"),
        ("mysql://h/db?pool_size=1&", "option=value"),
        ("mysql://h/db?=1", "option=value"),
        ("mysql://h/db?charset=latin1", "charset"),
        ("mysql://h/db?dsn=x", "dsn"),
        ("mysql://h/db?model_config=x", "model_config"),
        ("mysql://h/db?local_infile=1", "local_infile"),
        ("mysql://h/db?pool_size=1&pool_size=1", "twice"),
        ("mysql://h/db?host=h", "twice"),
        ("mysql://u@h/db?user=u", "twice"),
        ("mysql://h/db?database=db", "twice"),
        ("mysql://h:1/db?port=1", "twice"),
        ("mysql://h/db?unix_socket=/s", "unix_socket"),
        ("mysql://h/db?hosts=a,b", "hosts"),
        ("mysql://h/db?pool_size=many", "pool_size"),
        ("mysql://u:%ff@h/db", "UTF-8"),
        ("mysql://u\tv@h/db", "control"),
        ("mysql+mysqldb://h/db", "mysqlclient"),
        ("mysql+cymysql://h/db", "mysql+asyncmy"),
        ("mysql+://h/db", "mysql+pymysql"),
        ("mariadb+pymysql://h/db", "mysql+DRIVER"),
        ("mysql+pymysql://h/db?driver=pymysql", "twice"),
        ("mysql+pymysql://h/db?collation=latin1_bin", "collation"),
        ("mysql+pymysql://h/db?charset=", "charset"),
    ],
)
def test_the_error_of_a_wrong_dsn_names_the_mistake(dsn: str, named: str | None) -> None:
    if named is None:
        assert MySQLConfig(dsn=dsn).database == "db"
    else:
        assert named in refused(dsn=dsn)


@pytest.mark.parametrize(
    ("scheme", "driver"),
    [
        ("mysql+mysqlconnector", "mysql-connector"),
        ("mysql+pymysql", "pymysql"),
        ("mysql+aiomysql", "aiomysql"),
        ("mysql+asyncmy", "asyncmy"),
    ],
)
def test_a_dsn_in_sqlalchemy_s_form_names_the_driver(scheme: str, driver: str) -> None:
    config = MySQLConfig(dsn=f"{scheme}://u:pw@h:3307/db?charset=utf8mb4&collation=utf8mb4_0900_ai_ci&pool_size=3")
    assert (config.driver, config.user, config.port, config.pool_size) == (driver, "u", 3307, 3)
    assert MySQLConfig(dsn=f"{scheme}://h/db", driver=driver).driver == driver
    assert "driver" in refused(dsn=f"{scheme}://h/db", driver="another")
    assert MySQLConfig(dsn="mysql://h/db?charset=utf8mb4") == MySQLConfig(dsn="mysql://h/db")


@pytest.mark.parametrize("dsn", [5, b"mysql://h/db", ["mysql://h/db"]])
def test_a_dsn_that_is_no_text_is_refused(dsn: Any) -> None:
    assert "text" in refused(dsn=dsn)


def test_the_password_is_no_option_of_a_dsn() -> None:
    message = refused(dsn=f"mysql://h/db?password={SECRET}")
    assert "password" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    "dsn",
    [
        "mysql://u:123?{}=1@h/db",
        "mysql://u:1/{}@h/db",
        "mysql://u:{}/x@h/db",
        "mysql://u:{}#x@h/db",
        "mysql://u:[{}@h/db",
        "mysql://u:{}@h:port/db",
        "mysql://u:{}@h1,h2/db",
        "mysql://u:{}@h/db?x=1",
        "mysql://u:{}@h/d b",
        "postgres://u:{}@h/db",
        "u:{}@h",
        "mysql://u:{}%ff@h/db",
        "mysql://u:{}%00@h/db",
        "mysql://u:{}@h/db?pool_size=0",
    ],
)
def test_a_dsn_that_is_refused_is_not_repeated(dsn: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MySQLConfig(dsn=SecretStr(dsn.format(SECRET)))
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown


# DSN and keywords


@pytest.mark.parametrize(
    ("dsn", "keyword"),
    [
        ("mysql://h/db", {"host": "other"}),
        ("mysql://h/db", {"database": "other"}),
        ("mysql://u@h/db", {"user": "v"}),
        ("mysql://h:1/db", {"port": 2}),
        ("mysql://u:a@h/db", {"password": "b"}),
        ("mysql://h/db?pipeline=true", {"pipeline": False}),
        ("mysql://h/db?pool_timeout_s=30", {"pool_timeout_s": 31}),
        ("mysql:///db?hosts=a,b", {"hosts": ["b", "a"]}),
        ("mysql://h/db?ttl_s=5", {"ttl_s": None}),
    ],
)
def test_a_keyword_that_contradicts_the_dsn_is_refused(dsn: str, keyword: dict[str, Any]) -> None:
    message = refused(dsn=dsn, **keyword)
    assert next(iter(keyword)) in message
    assert "different values" in message


@pytest.mark.parametrize(
    ("dsn", "keyword"),
    [
        ("mysql://h/db", {"host": "h"}),
        ("mysql://h:1/db", {"port": 1}),
        ("mysql://u:a@h/db", {"password": SecretStr("a")}),
        ("mysql://h/db?pipeline=false", {"pipeline": False}),
        ("mysql://h/db?pool_timeout_s=30", {"pool_timeout_s": 30.0}),
        ("mysql:///db?hosts=a,b", {"hosts": ["a", "b"]}),
        (f"mysql://h/db?ssl_ca={__file__}", {"ssl_ca": Path(__file__)}),
    ],
)
def test_a_keyword_that_equals_the_dsn_s_option_is_accepted(dsn: str, keyword: dict[str, Any]) -> None:
    assert MySQLConfig(dsn=dsn, **keyword) == MySQLConfig(dsn=dsn)


def test_keywords_add_to_the_dsn() -> None:
    config = MySQLConfig(dsn="mysql://h/db?pool_size=3", tenant="t", password="pw")
    assert (config.host, config.pool_size, config.tenant) == ("h", 3, "t")


@pytest.mark.parametrize(
    ("dsn", "keyword"), [("mysql://h/db", {"unix_socket": "/s"}), ("mysql://h/db", {"hosts": ["h"]})]
)
def test_a_keyword_that_excludes_the_dsn_s_host_is_refused(dsn: str, keyword: dict[str, Any]) -> None:
    assert "exclude" in refused(dsn=dsn, **keyword)


# The environment


def test_every_option_can_come_from_the_environment() -> None:
    environment = {
        "LOCUS_MYSQL_HOSTS": "a, b:3307",
        "LOCUS_MYSQL_USER": "u",
        "LOCUS_MYSQL_PASSWORD": SECRET,
        "LOCUS_MYSQL_POOL_SIZE": "3",
        "LOCUS_MYSQL_PIPELINE": "false",
        "LOCUS_MYSQL_TTL_S": "60",
        "PATH": "/bin",
    }
    config = MySQLConfig.from_env(environment)
    assert config == MySQLConfig(
        hosts=("a", "b:3307"), user="u", password=SECRET, pool_size=3, pipeline=False, ttl_s=60
    )


def test_the_process_s_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", "mysql://h/db?tenant=t")
    assert MySQLConfig.from_env().tenant == "t"


def test_variables_of_other_tools_with_the_prefix_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"LOCUS_MYSQL_TEST_DSN": "mysql://x/y", "LOCUS_MYSQL_TEST_MYSQLD": "/z", "LOCUS_MYSQL_HOST": "h"}
    environment |= dict.fromkeys(("LOCUS_MYSQL_TOKENS", "LOCUS_MYSQL_COOKIE_KEY", "LOCUS_MYSQL_COPY_FROM"), "x")
    assert MySQLConfig.from_env(environment) == MySQLConfig(host="h")
    assert not caplog.records


def test_a_misspelt_variable_is_logged_without_its_value(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"LOCUS_MYSQL_HOST": "h", "LOCUS_MYSQL_POOL_SZIE": "3", "LOCUS_MYSQL_ENCRYPTON": SECRET}
    assert MySQLConfig.from_env(environment) == MySQLConfig(host="h")
    assert "LOCUS_MYSQL_POOL_SZIE is ignored" in caplog.text
    assert "Did you mean pool_size?" in caplog.text
    assert "Did you mean encryption?" in caplog.text
    assert SECRET not in caplog.text


def test_a_dsn_and_a_variable_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="database"):
        MySQLConfig.from_env({"LOCUS_MYSQL_DSN": "mysql://h/db", "LOCUS_MYSQL_DATABASE": "other"})


@pytest.mark.parametrize(
    ("environment", "keywords", "expected"),
    [
        ({"DSN": "mysql://h/db"}, {"database": "other"}, {"host": "h", "database": "other"}),
        ({"DSN": "mysql://h:1/db"}, {"host": "x"}, {"host": "x", "database": "db"}),
        ({"DSN": "mysql://h/db"}, {"unix_socket": "/s"}, {"unix_socket": "/s", "database": "db"}),
        ({"HOST": "h", "TENANT": "t"}, {"dsn": "mysql://x/db"}, {"host": "x", "database": "db", "tenant": "t"}),
        ({"DSN": "mysql://h/db"}, {"dsn": "mysql://x/other"}, {"host": "x", "database": "other"}),
        ({"HOSTS": "a,b"}, {"host": "x"}, {"host": "x"}),
    ],
)
def test_keywords_win_over_the_environment(
    environment: dict[str, str], keywords: dict[str, Any], expected: dict[str, Any]
) -> None:
    variables = {f"LOCUS_MYSQL_{name}": value for name, value in environment.items()}
    assert MySQLConfig.from_env(variables, **keywords) == MySQLConfig(**expected)


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(ConfigError, match="pool_size"):
        MySQLConfig.from_env({"LOCUS_MYSQL_POOL_SIZE": "many"})
