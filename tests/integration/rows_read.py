"""`rows_read`: counts the rows that the server reads for an operation."""

from __future__ import annotations

from typing import Any

import pymysql

from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Operation, Results


def rows_read(connection: pymysql.Connection[Any], operation: Operation[Any]) -> tuple[Any, int]:
    """Run an operation's statements one by one, without an engine.

    Returns:
        The operation's result, and the number of rows that the server read.
    """
    with connection.cursor() as cursor:
        rows = RowsRead(cursor)
        results: Results | None = None
        while True:
            try:
                batch = operation.send(results)  # type: ignore[arg-type]  # None starts it
            except StopIteration as done:
                return done.value, rows.number()
            answers = []
            for statement in batch.statements:
                affected = cursor.execute(statement.sql, statement.params)
                answers.append(Result(cursor.fetchall(), affected))
            results = Results(answers, batch)


class RowsRead:
    """Counts the rows that a session reads after this object was created.

    It compares the session's counters and never resets them: `FLUSH STATUS` resets the counters of all sessions of the
    server, and so those of other tests.

    Args:
        cursor: A cursor of the session.
    """

    def __init__(self, cursor: pymysql.cursors.Cursor) -> None:
        self._cursor = cursor
        first, self._before = self._counter(), self._counter()
        self._asking = self._before - first

    def number(self) -> int:
        """Return the number of rows read, without those read by the query for the counters."""
        return self._counter() - self._before - self._asking

    def _counter(self) -> int:
        self._cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in self._cursor.fetchall())
