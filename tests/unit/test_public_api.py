"""The cost of importing the package, and equality of its two sides."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any

import pytest

import locus_mysql
from locus_mysql.extras import install_command

#: Client libraries and frameworks that may be imported only when they are used.
FOREIGN = ("mysql", "pymysql", "aiomysql", "asyncmy", "locus", "langgraph", "langchain_core", "cryptography", "redis")

#: Names that need Locus.
OF_LOCUS = {
    "MySQLCheckpointer",
    "MySQLMemory",
    "SyncMySQLCheckpointer",
    "SyncMySQLMemory",
    "WorkingMemoryHook",
    "copy_threads",
    "WorkingSessions",
    "mysql_checkpointer",
    "register",
    "working_memory_tools",
}


def run(code: str) -> Any:
    """Return the JSON that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_no_public_name_but_those_of_locus_imports_a_library_or_framework() -> None:
    names = sorted(set(locus_mysql.__all__) - OF_LOCUS)
    loaded = run(
        "import json, sys, locus_mysql\n"
        f"for name in {names!r}: getattr(locus_mysql, name)\n"
        "locus_mysql.CheckpointStore, locus_mysql.MySQLConfig()\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert "locus_mysql.families.checkpoints.store" in loaded
    assert [name for name in loaded if name.split(".")[0] in FOREIGN] == []


def test_importing_the_package_loads_few_modules() -> None:
    loaded = run("import json, sys, locus_mysql\nprint(json.dumps(sorted(sys.modules)))")
    assert "pydantic" not in loaded
    assert [name for name in loaded if name.startswith("locus_mysql")] == ["locus_mysql"]
    loaded = run("import json, sys\nfrom locus_mysql import CheckpointStore\nprint(json.dumps(sorted(sys.modules)))")
    assert len([name for name in loaded if name.startswith("locus_mysql")]) <= 90


def test_importing_takes_a_few_times_as_long_as_importing_pydantic() -> None:
    """A tenth of it is asyncio. Measured: 3.7 to 4.3 times with pydantic 2.14, which is imported in 0.06 s."""
    code = """
import json, time
begin = time.process_time()  # not the time others take on a busy machine
import pydantic; pydantic.BaseModel; pydantic.TypeAdapter
between = time.process_time()
from locus_mysql import CheckpointStore
print(json.dumps((time.process_time() - between) / (between - begin)))
"""
    assert any(run(code) < 5 for _ in range(5))


def test_every_public_name_exists_and_is_listed() -> None:
    for name in locus_mysql.__all__:
        assert getattr(locus_mysql, name) is not None
        assert name in dir(locus_mysql)
    with pytest.raises(AttributeError, match="nothing"):
        _ = locus_mysql.nothing


@pytest.mark.parametrize(
    ("awaited", "blocking"),
    [
        ("CheckpointStore", "SyncCheckpointStore"),
        ("MySQLBackend", "SyncMySQLBackend"),
        ("MySQLCheckpointer", "SyncMySQLCheckpointer"),
        ("MySQLCheckpointSaver", "SyncMySQLCheckpointSaver"),
        ("WorkingMemory", "SyncWorkingMemory"),
    ],
)
def test_both_sides_have_the_same_methods_with_the_same_parameters(awaited: str, blocking: str) -> None:
    one, other = getattr(locus_mysql, awaited), getattr(locus_mysql, blocking)
    names = {name for name in vars(one) if not name.startswith("_")}
    assert names == {name for name in vars(other) if not name.startswith("_")}
    for name in names:
        mine, theirs = getattr(one, name), getattr(other, name)
        if not callable(mine):
            continue
        assert inspect.signature(mine).parameters == inspect.signature(theirs).parameters, name
        assert mine.__doc__, name
        assert theirs.__doc__, name
        assert not inspect.iscoroutinefunction(theirs), name


def test_methods_show_what_they_return() -> None:
    signature = inspect.signature(locus_mysql.CheckpointStore.load)
    assert "Operation" not in str(signature)
    assert list(signature.parameters) == ["self", "thread_id", "checkpoint_id"]


def test_every_error_is_of_one_family() -> None:
    from locus_mysql import errors

    for name, kind in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(kind, locus_mysql.LocusMySQLError), name


def test_names_that_need_locus_explain_that_it_is_missing() -> None:
    raised = run(
        "import json, sys, locus_mysql\n"
        "sys.modules['locus'] = None\n"
        "raised = {}\n"
        f"for name in {sorted(OF_LOCUS)!r}:\n"
        "    try: getattr(locus_mysql, name)\n"
        "    except Exception as error: raised[name] = f'{type(error).__name__}: {error}'\n"
        "print(json.dumps(raised))\n"
    )
    assert raised == {
        name: f"LocusMissing: locus_mysql.{name} needs the Locus SDK, which is not installed. "
        f"Run {install_command('locus')}."
        for name in OF_LOCUS
    }
