"""`MySQLConfig` checks every option, refuses contradictions, and never shows the password."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from locus_mysql import CheckpointStore, MySQLBackend, SyncCheckpointStore, SyncMySQLBackend
from locus_mysql.config import Endpoint, MySQLConfig, PasswordFunction
from locus_mysql.errors import ConfigError

SECRET = "s3cr3t-Pa55"


def refused(**options: Any) -> str:
    """Return the message that refuses these options."""
    with pytest.raises(ConfigError) as caught:
        MySQLConfig(**options)
    return str(caught.value)


# Defaults and single options


def test_without_options_it_is_a_local_server_with_safe_defaults() -> None:
    config = MySQLConfig()
    assert (config.driver, config.endpoints, config.user) == (
        "mysql-connector",
        (Endpoint("localhost", 3306),),
        "root",
    )
    assert (config.database, config.table_prefix, config.tenant) == ("locus", "locus_", "default")
    assert (config.ssl_mode, config.ddl_mode, config.pipeline, config.search) == ("PREFERRED", "create", True, True)
    assert config.ttl_s is None
    assert config.keep_checkpoints is None


GOOD: list[tuple[str, Any, Any]] = [
    ("driver", "aiomysql", "aiomysql"),
    ("host", "db.example.com", "db.example.com"),
    ("host", "db.example.com:3307", "db.example.com:3307"),
    ("port", "3307", 3307),
    ("unix_socket", "/run/my.sock", "/run/my.sock"),
    ("embedded", "folder", Path("folder").absolute()),
    ("hosts", ["a", "b:3307"], ("a", "b:3307")),
    ("read_only", "true", True),
    ("user", "agent", "agent"),
    ("database", "my-app$1", "my-app$1"),
    ("tenant", "Größe 東京", "Größe 東京"),
    ("table_prefix", "", ""),
    ("table_prefix", "p" * 40, "p" * 40),
    ("ssl_mode", "VERIFY_IDENTITY", "VERIFY_IDENTITY"),
    ("cleartext_password", "true", True),
    ("connect_timeout_s", "2.5", 2.5),
    ("read_timeout_s", 1, 1.0),
    ("write_timeout_s", 0.5, 0.5),
    ("pool_size", 1, 1),
    ("pool_timeout_s", 3, 3.0),
    ("pool_idle_s", 3, 3.0),
    ("pool_max_age_s", 3, 3.0),
    ("retry_deadline_s", 0, 0.0),
    ("select_timeout_s", None, None),
    ("select_timeout_s", "0.5", 0.5),
    ("slow_ms", None, None),
    ("slow_ms", "250", 250.0),
    ("ttl_s", 60, 60.0),
    ("keep_checkpoints", 1, 1),
    ("search", "off", False),
    ("search_parser", "ngram", "ngram"),
    ("compression", "none", "none"),
    ("cache_bytes", "0", 0),
    ("pipeline", "false", False),
    ("ddl_mode", "validate", "validate"),
]


@pytest.mark.parametrize(("option", "given", "kept"), GOOD)
def test_an_option_keeps_its_value(option: str, given: Any, kept: Any) -> None:
    assert getattr(MySQLConfig(**{option: given}), option) == kept


def test_every_option_is_tested_above_or_below() -> None:
    elsewhere = {"password", "ssl_ca", "ssl_cert", "ssl_key", "encryption"}
    assert {option for option, _, _ in GOOD} | elsewhere == set(MySQLConfig.model_fields)


BAD: list[tuple[str, Any]] = [
    ("driver", ""),
    ("host", ""),
    ("host", "two words"),
    ("host", "a,b"),
    ("host", "a/b"),
    ("host", "h:0"),
    ("host", "h:65536"),
    ("host", "h:x"),
    ("host", "user:pw@h"),
    ("host", "a\0b"),
    ("port", 0),
    ("port", 65_536),
    ("port", "mysql"),
    ("unix_socket", ""),
    ("hosts", ["ok", "no good"]),
    ("hosts", ["[::1"]),
    ("hosts", "a,b"),
    ("user", ""),
    ("user", "a\nb"),
    ("user", "a\0b"),
    ("password", 5),
    ("password", "a\0b"),
    ("password", "a\ud800b"),
    ("database", ""),
    ("database", "a`b"),
    ("database", "a b"),
    ("database", "a;DROP TABLE x"),
    ("database", "d" * 65),
    ("database", "app\n"),
    ("tenant", ""),
    ("tenant", "t" * 129),
    ("tenant", "a\0b"),
    ("tenant", "\ud800"),
    ("table_prefix", "1a"),
    ("table_prefix", "a`b"),
    ("table_prefix", "a-b"),
    ("table_prefix", "p" * 41),
    ("table_prefix", "é"),
    ("read_only", "replica"),
    ("ssl_mode", "required"),
    ("ssl_mode", "ON"),
    ("connect_timeout_s", 0),
    ("read_timeout_s", -1),
    ("write_timeout_s", float("nan")),
    ("pool_timeout_s", float("inf")),
    ("pool_size", 0),
    ("pool_size", 1.5),
    ("pool_idle_s", 0),
    ("pool_max_age_s", None),
    ("retry_deadline_s", -1),
    ("select_timeout_s", 0),
    ("slow_ms", -1),
    ("retry_deadline_s", float("nan")),
    ("ttl_s", 0),
    ("ttl_s", float("inf")),
    ("keep_checkpoints", 0),
    ("search", "perhaps"),
    ("search_parser", "mecab"),
    ("compression", "gzip"),
    ("cache_bytes", -1),
    ("pipeline", "maybe"),
    ("ddl_mode", "drop"),
]


@pytest.mark.parametrize(("option", "value"), BAD)
def test_a_wrong_value_is_refused_by_the_option_s_name(option: str, value: Any) -> None:
    assert option in refused(**{option: value})


def test_an_unknown_option_is_refused_and_the_known_ones_are_named() -> None:
    message = refused(pool_sise=3)
    assert "pool_sise" in message
    assert "pool_size" in message


def test_a_configuration_is_frozen() -> None:
    config = MySQLConfig(password=SECRET)
    with pytest.raises(ValidationError) as caught:
        config.password = SecretStr("new-" + SECRET)  # type: ignore[misc]
    assert SECRET not in str(caught.value)
    assert config.password.get_secret_value() == SECRET
    assert hash(config) == hash(MySQLConfig(password=SECRET))


@pytest.mark.parametrize("option", ["ssl_ca", "ssl_cert", "ssl_key"])
def test_a_certificate_file_that_is_missing_is_named(option: str, tmp_path: Path) -> None:
    there = tmp_path / "there.pem"
    there.touch()
    options = dict.fromkeys(("ssl_ca", "ssl_cert", "ssl_key"), there) | {option: tmp_path / "absent.pem"}
    message = refused(ssl_mode="VERIFY_CA", **options)
    assert option in message
    assert "absent.pem" in message


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"unix_socket": "/s", "host": "h"}, "unix_socket"),
        ({"unix_socket": "/s", "hosts": ["h"]}, "unix_socket"),
        ({"host": "h", "hosts": ["h"]}, "hosts"),
        ({"host": "h:3307", "port": 3308}, "port"),
        ({"ssl_cert": __file__}, "ssl_key"),
        ({"ssl_key": __file__}, "ssl_cert"),
        ({"ssl_mode": "DISABLED", "ssl_ca": __file__}, "DISABLED"),
        ({"ssl_mode": "DISABLED", "ssl_cert": __file__, "ssl_key": __file__}, "DISABLED"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], named: str) -> None:
    assert named in refused(**options)


# Where the server is


@pytest.mark.parametrize(
    ("options", "endpoints"),
    [
        ({"host": "db", "port": 3307}, [("db", 3307, None)]),
        ({"host": "db:3307"}, [("db", 3307, None)]),
        ({"host": "::1"}, [("::1", 3306, None)]),
        ({"host": "[fe80::1]:3307"}, [("fe80::1", 3307, None)]),
        (
            {"hosts": ["a", "b:3307", "[::1]:3308", "::2"], "port": 33},
            [("a", 33), ("b", 3307), ("::1", 3308), ("::2", 33)],
        ),
        ({"unix_socket": "/run/my.sock"}, [("localhost", 3306, "/run/my.sock")]),
    ],
)
def test_the_servers_are_tried_in_order(options: dict[str, Any], endpoints: list[Any]) -> None:
    assert MySQLConfig(**options).endpoints == tuple(Endpoint(*endpoint) for endpoint in endpoints)


# Embedded databases


@pytest.mark.parametrize(
    ("dsn", "folder", "others"),
    [
        ("mysql+embedded:///memory", "memory", {"database": "locus", "driver": "pymysql"}),
        ("mysql+embedded:///a/b%20c%40d", "a/b c@d", {}),
        ("mysql+embedded:////var/memory", "/var/memory", {}),
        ("mysql+embedded:///m?driver=aiomysql&database=app&tenant=a", "m", {"driver": "aiomysql", "database": "app"}),
    ],
)
def test_a_dsn_names_the_folder_of_an_embedded_database(dsn: str, folder: str, others: dict[str, str]) -> None:
    config = MySQLConfig(dsn=dsn)
    assert config.embedded == Path(folder).absolute()
    assert [str(endpoint) for endpoint in config.endpoints] == [str(Path(folder).absolute())]
    assert {name: getattr(config, name) for name in others} == others


def test_the_folder_of_an_embedded_database_stays_the_same_when_the_program_changes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = MySQLConfig(embedded="memory")
    monkeypatch.chdir("/")
    assert config.embedded == tmp_path / "memory"
    assert [str(endpoint) for endpoint in config.endpoints] == [str(tmp_path / "memory")]


def test_a_folder_of_an_embedded_database_that_no_system_takes_is_refused() -> None:
    with pytest.raises(ConfigError, match="embedded: names no folder"):
        MySQLConfig(embedded="")
    with pytest.raises(ConfigError, match="embedded: must not hold NUL"):
        MySQLConfig(dsn="mysql+embedded:///a%00b")


@pytest.mark.parametrize("dsn", ["mysql+embedded://", "mysql+embedded:///", "mysql+embedded://host/folder"])
def test_a_dsn_of_an_embedded_database_without_a_folder_is_refused(dsn: str) -> None:
    with pytest.raises(ConfigError, match=r"names no folder\. Write mysql\+embedded:///folder"):
        MySQLConfig(dsn=dsn)


@pytest.mark.parametrize(
    "options", [{"host": "h"}, {"port": 1}, {"hosts": ["a"]}, {"unix_socket": "/s"}, {"user": "u"}, {"password": "p"}]
)
def test_an_embedded_database_has_no_address_and_no_user(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"embedded and {name} exclude each other"):
        MySQLConfig(embedded="m", **options)


def test_a_dsn_as_a_keyword_takes_nothing_from_that_of_the_environment() -> None:
    environment = {"LOCUS_MYSQL_DSN": "mysql://agent:pw@db/app?tenant=acme", "LOCUS_MYSQL_POOL_SIZE": "3"}
    config = MySQLConfig.from_env(environment, dsn="mysql://owner@127.0.0.1/prod")
    assert (config.user, config.password_text, config.tenant, config.pool_size) == ("owner", "", "default", 3)
    own = MySQLConfig.from_env({**environment, "LOCUS_MYSQL_PASSWORD": "x"}, dsn="mysql://owner@127.0.0.1/prod")
    assert own.password_text == "x"


def test_an_embedded_database_replaces_the_server_in_the_environment_and_the_other_way_round() -> None:
    server = {"LOCUS_MYSQL_DSN": "mysql+asyncmy://agent:pw@db/app", "LOCUS_MYSQL_TENANT": "acme"}
    config = MySQLConfig.from_env(server, dsn="mysql+embedded:///m")
    assert (config.embedded, config.database, config.driver) == (Path("m").absolute(), "locus", "pymysql")
    assert (config.tenant, config.user) == ("acme", "root")
    config = MySQLConfig.from_env({"LOCUS_MYSQL_EMBEDDED": "m"}, host="db", user="agent")
    assert (config.embedded, config.host, config.driver) == (None, "db", "mysql-connector")


# The password


def config_with_secret() -> MySQLConfig:
    return MySQLConfig(dsn=f"mysql://u:{SECRET}@h/db")


def config_with_function() -> MySQLConfig:
    return MySQLConfig(dsn="mysql://u@h/db", password=partial(str, SECRET))


def texts_about(config: MySQLConfig) -> Iterator[tuple[str, str]]:
    yield "repr", repr(config)
    yield "str", str(config)
    yield "format", f"{config} {config!r} {config.password}"
    yield "dump", str(config.model_dump())
    yield "json", config.model_dump_json()
    yield "copy", repr(copy.deepcopy(config.model_copy(update={"tenant": "x"})))
    yield "pickle", repr(pickle.loads(pickle.dumps(config)))
    yield "fields", str(dict(config))
    for store in (CheckpointStore, SyncCheckpointStore, MySQLBackend, SyncMySQLBackend):
        yield store.__name__, f"{store(config)!r} {store(config)}"
    try:
        from locus_mysql import MySQLCheckpointer
    except ImportError:
        return
    yield "checkpointer", f"{MySQLCheckpointer(config)!r}"


@pytest.mark.parametrize("make", [config_with_secret, config_with_function])
def test_the_password_is_not_shown(make: Callable[[], MySQLConfig]) -> None:
    assert [how for how, text in texts_about(make()) if SECRET in text] == []


def test_a_function_as_password_is_kept_by_copies() -> None:
    def function() -> str:
        return SECRET

    config = MySQLConfig(password=function, hosts=("a",))
    for one in (config, config.for_store(tenant="t"), config.model_copy(update={"port": 1})):
        assert isinstance(one.password, PasswordFunction)
        assert one.password.call is function
    with pytest.raises(ConfigError, match="not a function"):
        _ = config.password_text
    assert MySQLConfig(password=SECRET).password_text == SECRET


@pytest.mark.parametrize(
    "options",
    [
        {"password": SECRET, "port": 0},
        {"password": SECRET, "unknown": 1},
        {"passwort": SECRET},
        {"password": [SECRET]},
        {"password": SECRET + "\0"},
        {"password": {SECRET: 1}},
        {"password": SECRET, "dsn": "mysql://u:other@h/db"},
        {"password": "other", "dsn": SecretStr(f"mysql://u:{SECRET}@h/db")},
        {"host": f"mysql://u:{SECRET}@h/db"},
        {"host": f"u:{SECRET}@h"},
        {"hosts": [f"u:{SECRET}@h"]},
    ],
    ids=lambda options: "+".join(options),
)
def test_no_error_and_no_traceback_shows_the_password(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        MySQLConfig(**options)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_model_that_holds_a_configuration_gets_a_validation_error() -> None:
    class Settings(BaseModel):
        mysql: MySQLConfig

    assert Settings.model_validate({"mysql": {"dsn": "mysql://h/db"}}).mysql == MySQLConfig(host="h", database="db")
    with pytest.raises(ValidationError, match="port"):
        Settings.model_validate({"mysql": {"dsn": "mysql://h/db", "port": 0}})


def test_a_store_takes_a_configuration_or_options_but_not_both() -> None:
    with pytest.raises(ConfigError, match="not both"):
        CheckpointStore(MySQLConfig(), tenant="t")
    assert CheckpointStore(tenant="t").config.tenant == "t"
