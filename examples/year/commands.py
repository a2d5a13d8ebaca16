"""The command line of a version to come, with the next layouts: ``python -m examples.year.commands LAYOUT ARGUMENTS``.

0.1.0 is the first release, so no version has another layout yet. These are rehearsals: layout 2 of each family has a
column more, which is filled, and layout 3 an index on it. Programs of layout 1 can use both.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import cast

from locus_mysql.cli.main import main
from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.dialect.schema import Table, Upgrade, add_column, add_index, backfill
from locus_mysql.families.family import Family
from locus_mysql.families.registry import families, register_family

COLUMN = "team"


def next_schema(schema: Schema, layout: int) -> Schema:
    """Return a family's tables in the layout of a version to come."""
    first, *others = schema.tables
    (key,) = re.findall(r"PRIMARY KEY \((.*?)\)", first.definition)
    definition = first.definition.replace("  PRIMARY KEY", f"  {COLUMN} VARCHAR(64) NULL,\n  PRIMARY KEY", 1)
    fill = backfill(
        first.name,
        tuple(key.split(", ")),
        assignments=f"{COLUMN} = 'support'",
        condition=f"{COLUMN} IS NULL",
        words=f"fill {COLUMN} of {first.name}",
    )
    added = add_column(first.name, COLUMN, "VARCHAR(64) NULL")
    upgrades = [Upgrade(2, 1, (added, fill))]
    if layout > 2:
        definition = definition.replace("  PRIMARY KEY", f"  KEY by_{COLUMN} ({COLUMN}),\n  PRIMARY KEY", 1)
        upgrades.append(Upgrade(3, 1, (add_index(first.name, f"by_{COLUMN}", COLUMN),)))
    tables = (Table(first.name, definition), *others)
    return dataclasses.replace(schema, layout_version=layout, tables=tables, upgrades=tuple(upgrades))


class NextVersion:
    """A family as a version to come has it; see `Family`.

    Args:
        family: The family as it is.
        layout: The number of its layout then.
    """

    def __init__(self, family: Family, layout: int) -> None:
        self._family = family
        self._layout = layout

    def __getattr__(self, name: str) -> object:
        return getattr(self._family, name)

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return next_schema(self._family.schema(config), self._layout)


if __name__ == "__main__":
    for one in families():
        if not one.on_request:  # memU's tables
            register_family(cast(Family, NextVersion(one, int(sys.argv[1]))))
    sys.exit(main(sys.argv[2:]))
