"""The tables of graphs."""

from __future__ import annotations

import re

from locus_mysql.families.graphs.statements.tables import graph_schema


def test_tables_are_made_only_if_missing_and_carry_their_version() -> None:
    for statement in graph_schema("p_").create():
        assert statement.sql.startswith("CREATE TABLE IF NOT EXISTS `p_graph_")
        assert "COMMENT='locus-mysql: graphs layout 1'" in statement.sql
        assert "COLLATE=utf8mb4_0900_bin" in statement.sql
        assert ("AUTO_INCREMENT" in statement.sql) == ("KEY drawn (seq)" in statement.sql)
        (primary,) = re.findall(r"PRIMARY KEY \((.*?)\)", statement.sql)
        assert primary.startswith(("tenant, thread_id", "tenant, token"))
