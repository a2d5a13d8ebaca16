"""`killed`: runs commands that export, import or copy rows, in processes that are killed in the middle."""

from __future__ import annotations

import subprocess
import sys

DEADLINE_S = 240.0

#: Runs a command, and kills its process in the n-th call of a function, after half of that call's work.
_KILLED = """
import os, signal, sys
from locus_mysql.records.moving import Moving
from locus_mysql.records.owner_reader import OwnerReader
from locus_mysql.records.owner_writer import OwnerWriter
from locus_mysql.records.maintenance import Maintenance
from locus_mysql.records import files
from locus_mysql.transfer.files import PartFile
from locus_mysql.families.registry import register_family
from locus_mysql.cli.main import main
from tests.integration.families.toys import ToyFamily
register_family(ToyFamily())
what, at, items, *arguments = sys.argv[1:]
calls = 0

def counted(function):
    def call(*given, **options):
        global calls
        calls += 1
        if calls == int(at):
            if what == "write":
                given[0]._file.write(given[1][: len(given[1]) // 2])
                given[0]._file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **options)
    return call

if what == "removal":
    Maintenance._remove_some = counted(Maintenance._remove_some)
elif what == "write":
    PartFile.write = counted(PartFile.write)
elif what == "read":
    files.content_of = counted(files.content_of)
else:
    OwnerWriter._once = counted(OwnerWriter._once)
files.MAX_RECORDS = Moving.max_rows = int(items)
sys.exit(main(arguments))
"""


def killed(what: str, at: int, *arguments: str, items: int) -> bool:
    """Run a command that is killed at its n-th write or read, and return whether it was killed.

    Args:
        what: ``write`` to count writes of a piece of a file, ``read`` to count reads of a line, ``transaction`` to
            count transactions that write rows, ``removal`` those that remove owners.
        at: The number of the write or read at which the process is killed.
        arguments: The command and its arguments.
        items: The number of items or rows that the command writes or reads at once.
    """
    script = [sys.executable, "-c", _KILLED, what, str(at), str(items), *arguments]
    return subprocess.run(script, capture_output=True, timeout=DEADLINE_S).returncode == -9
