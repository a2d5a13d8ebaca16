"""Record the current layouts, before the release of a version: ``python -m tests.layouts``, on a server for tests.

It refuses to do so for a version that CHANGELOG.md does not call unreleased: the layouts of a released version stay as
they are.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from locus_mysql import MySQLConfig, __version__
from locus_mysql.families.family import HasUserModel
from locus_mysql.families.registry import families
from tests.integration.connecting import connect

from . import dumps, filling, fingerprints

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def main() -> int:
    if f"## [{__version__}] - unreleased" not in CHANGELOG.read_text():
        print(f"CHANGELOG.md does not say that {__version__} is unreleased. Raise the version first.", file=sys.stderr)
        return 1
    if "LOCUS_MYSQL_TEST_DSN" not in os.environ:
        print("Run it as: ci/mysql run --fast -- .venv/bin/python -m tests.layouts", file=sys.stderr)
        return 1
    fingerprints.record()
    record_dumps(MySQLConfig(dsn=os.environ["LOCUS_MYSQL_TEST_DSN"], driver="pymysql"))
    return 0


def record_dumps(server: MySQLConfig) -> None:
    """Write the dumps of the current version, from tables in a schema that is dropped again."""
    connection = connect(server)
    config = server.model_copy(update={"database": f"locus_layouts_{secrets.token_hex(6)}"})

    def run_sql(sql: str, *params: Any) -> Sequence[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(sql, params or None)
            return cursor.fetchall()

    folder = dumps.FOLDER / __version__
    folder.mkdir(parents=True, exist_ok=True)
    run_sql(f"CREATE DATABASE {config.database}")
    try:
        filling.fill(config)
        for family in families():
            one = family.with_fields(["user_id"]) if isinstance(family, HasUserModel) else family
            text = dumps.dumped(run_sql, str(config.database), one.schema(config).names)
            (folder / f"{family.name}.sql").write_text(text)
    finally:
        run_sql(f"DROP DATABASE {config.database}")
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
