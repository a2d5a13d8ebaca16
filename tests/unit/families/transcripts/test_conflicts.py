"""Writers of one state wait for random, growing times before they try again."""

from __future__ import annotations

from locus_mysql import MySQLConfig
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Batch, Outdated, Pause
from locus_mysql.engine.retry import FIRST_CONFLICT_WAIT_S, LONGEST_CONFLICT_WAIT_S
from locus_mysql.families.transcripts.records import TranscriptKey, Write
from locus_mysql.families.transcripts.statements.tables import transcript_dialect
from locus_mysql.families.transcripts.writing import WritingOperations
from locus_mysql.records.leases import Turns
from tests.unit.driven import Driven

CONFIG = MySQLConfig(dsn="mysql://user@localhost/app")


def test_a_writer_of_a_hot_state_pauses_between_its_attempts() -> None:
    dialect = transcript_dialect()
    operations = WritingOperations(CONFIG, dialect, Turns(dialect))
    key = TranscriptKey("kind", "", "state")
    write = Driven(operations.write([Write(key, fold=lambda state, _: (state or 0) + 1)]))
    pauses: list[float] = []
    batch: Batch = next(write)
    while len(pauses) < 12:
        if isinstance(batch, Pause):
            pauses.append(batch.seconds)
            batch = write.send([])
        elif batch.only_reads:  # the state, which does not exist
            batch = write.send([Result(rows=()) for _ in batch.statements])
        else:
            batch = write.throw(Outdated("another process wrote"))
    write.close()
    for number, pause in enumerate(pauses):
        assert 0 <= pause <= min(FIRST_CONFLICT_WAIT_S * 2**number, LONGEST_CONFLICT_WAIT_S)
    assert max(pauses) > FIRST_CONFLICT_WAIT_S
    assert len(set(pauses)) == len(pauses)
