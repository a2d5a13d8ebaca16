"""Every table of every family has keys that a partition allows, or is refused with its name."""

from __future__ import annotations

import re

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.schema import Schema, Table
from locus_mysql.dialect.structure import CannotPartition, partitioned
from locus_mysql.dialect.variants import OCEANBASE, FamilyRefused
from locus_mysql.families.registry import families

SUPPORTED = [family for family in families() if family.name in OCEANBASE.families]

#: The keys of memU's tables are those of memU: an id alone.
PARTITIONED = [family for family in SUPPORTED if family.name != "memu"]


@pytest.mark.parametrize("family", PARTITIONED, ids=lambda family: family.name)
def test_each_table_of_a_supported_family_is_partitioned_by_columns_of_all_its_unique_keys(family: object) -> None:
    schema = family.schema(MySQLConfig())  # type: ignore[attr-defined]
    made = partitioned(schema, OCEANBASE, 4)
    assert len(made) == len(schema.tables)
    for statement in made:
        (key,) = re.findall(r"PARTITION BY KEY \((.*)\) PARTITIONS 4$", statement.sql)
        for unique in re.findall(r"(?:PRIMARY KEY|UNIQUE KEY \w+) \((.*)\)", statement.sql):
            assert {*key.split(", ")} <= {*unique.split(", ")}


def test_a_table_whose_keys_have_no_thread_is_refused_by_name() -> None:
    definition = (
        "(\n  tenant INT,\n  thread_id INT,\n  PRIMARY KEY (tenant, thread_id),\n  UNIQUE KEY other (tenant)\n)"
    )
    schema = Schema("dicts", 1, (Table("odd", definition),))
    with pytest.raises(CannotPartition, match=r"^Table `odd` cannot be partitioned"):
        partitioned(schema, OCEANBASE, 4)
    assert len(partitioned(schema, OCEANBASE, None)) == 1


def test_the_tables_of_memu_cannot_be_partitioned() -> None:
    (memu,) = (family for family in SUPPORTED if family not in PARTITIONED)
    with pytest.raises(CannotPartition, match=r"^Table `resources` cannot be partitioned"):
        partitioned(memu.schema(MySQLConfig()), OCEANBASE, 4)
    assert all("PARTITION" not in one.sql for one in partitioned(memu.schema(MySQLConfig()), OCEANBASE, None))


def test_a_family_that_is_not_supported_is_refused() -> None:
    with pytest.raises(FamilyRefused):
        partitioned(Schema("other", 1, ()), OCEANBASE, 4)
