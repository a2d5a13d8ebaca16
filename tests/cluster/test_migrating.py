"""A migration in a group: every member has the upgraded tables, also when the primary fails in the middle."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.dialect.schema import Step
from locus_mysql.errors import Unavailable
from locus_mysql.families.migrating import migrate
from locus_mysql.families.registry import register_family, unregister_family

from ..integration.families.test_migrating import ALL, UpgradedToys, check, words
from .conftest import GROUP_TAKES_S, Group


@pytest.fixture
def toys(group: Group, database: str) -> Iterator[MySQLConfig]:
    """Yield a configuration with toys of layout 1; the registered family has layout 3."""
    config = group.config.model_copy(
        update={"driver": "pymysql", "retry_deadline_s": GROUP_TAKES_S, "database": database}
    )
    check(config, 1, "create")
    register_family(UpgradedToys(3))
    yield config
    unregister_family("toys")


def columns_of(group: Group, config: MySQLConfig) -> set[int]:
    """Return the numbers of the toys' columns on the members."""
    query = (
        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_NAME = 'locus_toys'"
        f" AND TABLE_SCHEMA = '{config.database}'"
    )
    return {int(member.run(query)[0][0]) for member in group.members}


@pytest.mark.parametrize("failing_at", [None, 1])
def test_every_member_has_the_upgraded_tables(group: Group, toys: MySQLConfig, failing_at: int | None) -> None:
    steps: list[Step] = []

    def report(step: Step) -> None:
        if len(steps) == failing_at:
            group.primary().kill()
        steps.append(step)

    try:
        migrate(toys, family="toys", report=report)
    except Unavailable:
        migrate(toys, family="toys", report=steps.append)
    assert list(dict.fromkeys(words(steps))) == ALL
    check(toys, 3)
    group.mend()
    deadline = time.monotonic() + GROUP_TAKES_S
    while columns_of(group, toys) != {10} and time.monotonic() < deadline:
        time.sleep(0.1)
    assert columns_of(group, toys) == {10}
