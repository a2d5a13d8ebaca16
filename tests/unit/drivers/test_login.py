"""Logging in: imports of libraries by one thread at a time, TLS, and the password over connections without it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.drivers.login import imported_once, tls_context
from locus_mysql.errors import ConfigError

#: Two threads import a library's modules in different orders; each module takes a while to find, so they meet.
_BOTH_SIDES = """
import sys, threading, time
from locus_mysql.drivers.libraries.mysql_connector import awaited_class, blocking_class
from locus_mysql.drivers.libraries import aiomysql, asyncmy, pymysql

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("mysql", "pymysql", "aiomysql", "asyncmy")):
            time.sleep(0.002)

sys.meta_path.insert(0, Slow())
sys.setswitchinterval(1e-6)
wanted, failed = {wanted}, []
start = threading.Barrier(len(wanted))

def run(make):
    start.wait()
    try:
        make()
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=run, args=(make,)) for make in wanted]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""


@pytest.mark.parametrize(
    "wanted",
    [
        "[blocking_class, awaited_class] * 2",
        "[pymysql._connection_class, aiomysql._connection_class, asyncmy._connection_class] * 2",
    ],
)
def test_both_sides_of_a_library_may_be_used_first_at_the_same_time(wanted: str) -> None:
    script = _BOTH_SIDES.replace("{wanted}", wanted)
    runs = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [run.communicate()[0] for run in runs] == ["[]\n"] * 3


def test_a_library_is_imported_once_and_not_while_another_is() -> None:
    running, most = 0, 0
    guard = threading.Lock()

    def make() -> object:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with guard:
            running -= 1
        return object()

    getters = [imported_once(make) for _ in range(3)]
    found: list[object] = []
    threads = [threading.Thread(target=lambda get=get: found.append(get())) for get in getters * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert len({*map(id, found)}) == 3


def test_an_import_that_failed_is_tried_again() -> None:
    outcomes = [ImportError("not yet"), None]

    def make() -> str:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return "module"

    get = imported_once(make)
    with pytest.raises(ImportError):
        get()
    assert get() == get() == "module"


def test_a_child_forked_during_an_import_can_import() -> None:
    begun, finish = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        finish.wait(10)

    importing = threading.Thread(target=imported_once(slow))
    importing.start()
    begun.wait(10)
    threading.Timer(0.05, finish.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if imported_once(lambda: 7)() == 7 else 1)
    _, status = os.waitpid(child, 0)
    importing.join()
    assert status == 0


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing of that kind")
    with pytest.raises(ConfigError, match="ssl_ca cannot be used"):
        tls_context(MySQLConfig(ssl_mode="VERIFY_CA", ssl_ca=file))
    with pytest.raises(ConfigError, match="ssl_cert and ssl_key cannot be used"):
        tls_context(MySQLConfig(ssl_mode="REQUIRED", ssl_cert=file, ssl_key=file))
