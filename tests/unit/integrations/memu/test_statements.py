"""Every declared statement of memU's records is made, and OceanBase's text has the parameters of MySQL's."""

from __future__ import annotations

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.dialect.parameters import Plan, place_parameters
from locus_mysql.dialect.sql import SQL
from locus_mysql.dialect.template import Text, fill
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.integrations.memu import statements

from .statements import memu_statements

MADE = [(name, one) for name, one in memu_statements() if isinstance(one.sql, Text)]


def test_each_declaration_is_made() -> None:
    declared = {one.text for one in vars(statements).values() if isinstance(one, SQL)}
    assert declared <= {one.sql.template for _, one in MADE if isinstance(one.sql, Text)}


@pytest.mark.parametrize(("name", "statement"), MADE, ids=[name for name, _ in MADE])
def test_both_engines_take_the_same_parameters(name: str, statement: Statement) -> None:
    text = statement.sql
    assert isinstance(text, Text)

    def plan_of(template: str) -> Plan:
        return place_parameters(template, text.shapes or ())[1]

    mysql = fill(text.template, {**text.shared, **text.pieces})
    assert {*plan_of(OCEANBASE._render(text))} == {*plan_of(mysql)}
