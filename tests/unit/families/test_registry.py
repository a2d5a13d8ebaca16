"""The registry of families, and the objects in it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.errors import InvalidInput
from locus_mysql.families.registry import families, find_family
from locus_mysql.records.maintenance import Count, in_words


def test_every_family_is_found_by_the_name_that_stands_in_its_tables() -> None:
    config = MySQLConfig(database="app")
    for family in families():
        assert find_family(family.name) is family
        assert family.schema(config).family == family.name


def test_every_family_gives_the_parts_that_commands_and_pages_use() -> None:
    config = MySQLConfig(database="app")
    for family in families():
        assert family.schema(config).names
        maintenance = family.maintenance(config)
        assert all(callable(method) for method in (maintenance.stored, maintenance.waste, maintenance.vacuum))
        assert {one.schema.family for one in family.tables(config)} == {family.name}
        assert family.inspection(config) is not None or not family.holds_threads
        assert family.changes(config) is not None or not family.holds_threads


def test_no_two_families_have_a_table_of_the_same_name() -> None:
    names = [name for family in families() for name in family.schema(MySQLConfig(database="app")).names]
    assert len(set(names)) == len(names)


def test_an_unknown_family_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInput, match=r"no family 'toys' of tables. Known: agents, graphs, .*"):
        find_family("toys")


def test_finding_a_family_imports_no_other_one() -> None:
    code = (
        "import json, sys\n"
        "from locus_mysql.families.registry import find_family\n"
        "find_family('working')\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('locus_mysql.')]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = json.loads(done.stdout)
    assert "locus_mysql.families.working.family" in loaded
    assert [name for name in loaded if "memu" in name or "memories" in name or "graphs" in name] == []


def test_counts_are_written_with_their_nouns() -> None:
    counts = (
        Count(1, "{expired item}"),
        Count(2_000, "embeddings of {deleted item}"),
        Count(0, "{record} of recent writes"),
    )
    assert in_words(counts) == "1 expired item, embeddings of 2,000 deleted items and 0 records of recent writes"
    assert in_words(counts[:1]) == "1 expired item"
    assert [count.noun for count in counts] == ["expired items", "deleted items", "records"]
