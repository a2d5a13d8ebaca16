"""Fixtures of the fault tests, and their result table: printed at the end, and written into the documents.

pytest tests/faults                          print the table
pytest tests/faults --write-faults-table     and write it into docs/design/faults.md, with every driver and a fifth of
                                             the faults for each store; with LOCUS_MYSQL_TEST_FULL=true, all of them
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..integration.conftest import (  # noqa: F401 - fixtures
    database,
    make_config,
    no_housekeeping,
    open_store,
    opening,
    own_config,
    own_server,
    own_sql,
    proxy,
    pytest_collection_modifyitems,
    pytest_itemcollected,
    run_sql,
    server,
    server_dsn,
    through_proxy,
)
from .table import Row, as_document, as_text

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/design/faults.md"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the document."""
    parser.addoption("--write-faults-table", action="store_true", help=f"write {DOCUMENT.name} from what was seen")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table. Its rows come with the tests' reports, so that rows of other processes are included."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    rows = [value for report in reports for name, value in report.user_properties if name == "faults"]
    if not rows:
        return
    seen = [Row(*row) for _, _, *row in sorted(rows)]
    terminalreporter.write_line("")
    terminalreporter.write_line(as_text(seen))
    if config.getoption("write_faults_table"):
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(as_document(seen), encoding="utf-8")
