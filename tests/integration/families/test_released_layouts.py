"""Tables of each released version, from its dumps: upgraded, compared and read by this version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import Database, migrate
from locus_mysql.engine.bootstrap import describe, ensure_schema
from locus_mysql.families.family import HasUserModel
from locus_mysql.families.registry import families
from tests.layouts import dumps, filling

from ..conftest import MakeConfig

#: The largest size of the dumps of one version, in bytes.
SIZE_LIMIT = 60_000

RELEASES = sorted(folder.name for folder in dumps.FOLDER.iterdir())


@pytest.mark.parametrize("release", RELEASES)
def test_tables_of_a_release_are_upgraded_and_read(
    make_config: MakeConfig, run_sql: Callable[..., tuple[Any, ...]], release: str
) -> None:
    config = make_config(driver="pymysql")
    run_sql("SET foreign_key_checks = 0")
    for file in sorted((dumps.FOLDER / release).iterdir()):
        dumps.load(run_sql, str(config.database), file.read_text())
    run_sql("SET foreign_key_checks = 1")
    plans = {plan.family: plan for plan in migrate(config)}
    for family in families():
        assert plans[family.name].layout is not None
        one = family.with_fields(["user_id"]) if isinstance(family, HasUserModel) else family
        schema = one.schema(config)
        with Database(config) as database:
            database.synchronous.run(ensure_schema(config, schema, "validate"))
            assert database.synchronous.run(describe(schema)).differences == ((), ())
    filling.check(config.model_copy(update={"ddl_mode": "validate"}))
    assert not any(plan.pending for plan in migrate(config))


@pytest.mark.parametrize("release", RELEASES)
def test_the_dumps_of_a_release_are_complete_and_small(release: str) -> None:
    files = list((dumps.FOLDER / release).iterdir())
    assert {file.stem for file in files} >= {"agents", "versions", "dicts", "current", "memories", "working", "memu"}
    assert sum(file.stat().st_size for file in files) < SIZE_LIMIT
