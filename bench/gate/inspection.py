"""Rows that the server reads for the inspector, at two numbers of threads."""

from __future__ import annotations

import asyncio
import random

import pymysql

from locus_mysql import MySQLConfig
from locus_mysql.inspection import Inspector

from .. import inspection
from ..database import fresh_database
from ..disk import administrator
from .reads import rows_read

SIZES = (1_000, 5_000)


def figures(dsn: str) -> dict[str, float]:
    """Return the rows read, by operation and number of threads."""
    found: dict[str, float] = {}
    for size in SIZES:
        with fresh_database(dsn) as own:
            config = MySQLConfig(dsn=own, search=False, pool_size=1)
            inspection.fill(config, own, size)
            with administrator(own) as cursor:
                reads = asyncio.run(_reads(config, cursor, size))
        found |= {f"{name}, {size} threads": count for name, count in reads.items()}
    return found


async def _reads(config: MySQLConfig, cursor: pymysql.cursors.Cursor, size: int) -> dict[str, int]:
    reads = {}
    async with Inspector(config) as inspector:
        await inspector.threads("dicts", limit=1)  # the first call also checks the tables
        for name, call in inspection.OPERATIONS.items():
            before = rows_read(cursor)
            await call(inspector, size, random.Random(3))
            reads[name] = rows_read(cursor) - before
    return reads
