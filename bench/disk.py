"""Bytes stored in a database, as the server counts them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from locus_mysql import MySQLConfig


@contextmanager
def administrator(dsn: str) -> Iterator[pymysql.cursors.Cursor]:
    """Yield a cursor of a new connection to the DSN's database."""
    config = MySQLConfig(dsn=dsn)
    connection: Any = pymysql.connect(
        host=config.host,
        port=config.port,
        user=config.user,
        password=config.password.get_secret_value(),
        database=config.database,
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION group_concat_max_len = 1000000")
        yield cursor


def bytes_in_rows(dsn: str) -> int:
    """Return the bytes in all columns of all rows of a database, without indexes and free space."""
    return _sum_of_lengths(dsn, "TRUE")


def bytes_in_text_columns(dsn: str) -> int:
    """Return the bytes in the columns with text for search, which are recognised by their names."""
    return _sum_of_lengths(dsn, "COLUMN_NAME LIKE '%text%'")


def bytes_in_files(dsn: str) -> int:
    """Return the size of a database's files: tables, their indexes, and the hidden tables of full-text indexes."""
    with administrator(dsn) as cursor:
        cursor.execute(
            "SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.INNODB_TABLESPACES"
            " WHERE NAME LIKE CONCAT(DATABASE(), '/%')"
        )
        ((size,),) = cursor.fetchall()
    return int(size)


def _sum_of_lengths(dsn: str, which_columns: str) -> int:
    with administrator(dsn) as cursor:
        cursor.execute(
            "SELECT TABLE_NAME, GROUP_CONCAT(CONCAT('COALESCE(LENGTH(`', COLUMN_NAME, '`), 0)') SEPARATOR ' + ')"
            "  FROM information_schema.COLUMNS"
            f" WHERE TABLE_SCHEMA = DATABASE() AND {which_columns} GROUP BY TABLE_NAME"
        )
        total = 0
        for table, lengths in cursor.fetchall():
            cursor.execute(f"SELECT COALESCE(SUM({lengths}), 0) FROM `{table}`")
            ((size,),) = cursor.fetchall()
            total += int(size)
    return total
