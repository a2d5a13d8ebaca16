"""What type checkers, and whoever asks for type hints at run time, are told of the public classes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest

import locus_mysql
from locus_mysql.config import (
    ConnectionKeywords,
    ConnectionOptions,
    Keywords,
    MySQLConfig,
    StoreKeywords,
    StoreOptions,
)

ROOT = Path(__file__).resolve().parents[2]

CLASSES = sorted(name for name in locus_mysql.__all__ if isinstance(getattr(locus_mysql, name), type))


@pytest.mark.parametrize("name", CLASSES)
def test_hints_of_every_public_method_can_be_had(name: str) -> None:
    kind = getattr(locus_mysql, name)
    own = [value for attribute, value in vars(kind).items() if not attribute.startswith("_")]
    for method in [kind.__init__, *filter(callable, own)]:
        if isinstance(method, types.FunctionType):
            assert "Operation" not in str(get_type_hints(method)), method


def test_a_method_can_be_a_tool_of_an_agent() -> None:
    from locus.tools import tool

    checkpointer = locus_mysql.MySQLCheckpointer("mysql://user:password@localhost/app")
    made = tool(checkpointer.load)
    assert made.parameters["properties"]["thread_id"] == {"type": "string"}
    assert made.parameters["required"] == ["thread_id"]


@pytest.mark.parametrize(
    ("keywords", "options"),
    [(ConnectionKeywords, ConnectionOptions), (StoreKeywords, StoreOptions), (Keywords, MySQLConfig)],
)
def test_keywords_are_those_of_the_model_with_its_types(keywords: Any, options: Any) -> None:
    hints = get_type_hints(keywords)
    if keywords is not StoreKeywords:
        assert "dsn" in hints
    hints.pop("dsn", None)
    accepted = get_type_hints(options, include_extras=True)
    assert hints.keys() == options.model_fields.keys()
    for name, hint in hints.items():
        assert alternatives(accepted[name]) <= alternatives(hint), name


def alternatives(hint: Any) -> set[Any]:
    """The types of a union, or the one, without pydantic's constraints."""
    if get_origin(hint) is Annotated:
        return alternatives(get_args(hint)[0])
    if get_origin(hint) in {Union, types.UnionType}:
        return {kind for one in get_args(hint) for kind in alternatives(one)}
    return {hint}


SNIPPET = """\
from pathlib import Path
from typing import assert_type

from locus.core.state import AgentState
from locus_mysql import CheckpointStore, Database, MySQLBackend, MySQLCheckpointer, SyncCheckpointStore

DSN = "mysql://user:password@localhost/app"
store = SyncCheckpointStore(DSN, pool_size=3, hosts=["a", "b"], ssl_ca="ca.pem", ssl_key=Path("key.pem"))
assert_type(store.save("t", {"a": 1}), str)


async def use() -> None:
    async with Database(DSN) as db:
        assert_type(await MySQLCheckpointer(db, tenant="acme").load("t"), AgentState | None)


SyncCheckpointStore(DSN, poolsize=3)  # refused: poolsize
CheckpointStore(DSN, pool_size="three")  # refused: pool_size
MySQLCheckpointer(poolsize=3)  # refused: poolsize
MySQLBackend(DSN, poolsize=3)  # refused: poolsize
Database(DSN, tenent="acme")  # refused: tenent
store.save("t")  # refused: "data" in call to "save" of "SyncCheckpointStore"
store.save("t", 3)  # refused: Argument 2 to "save" of "SyncCheckpointStore" has incompatible type "int"
store.load("t", nonsense=1)  # refused: Unexpected keyword argument "nonsense" for "load" of "SyncCheckpointStore"
"""


@pytest.mark.slow
def test_mypy_knows_every_option_and_argument(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPET)
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={ROOT / '.cache/mypy-of-tests'}", "snippet.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    told = dict(re.findall(r"snippet\.py:(\d+): error: (.*)", done.stdout))
    lines = enumerate(SNIPPET.splitlines(), 1)
    refused = {str(number): line.rpartition(": ")[2] for number, line in lines if "# refused" in line}
    assert told.keys() == refused.keys(), done.stdout + done.stderr
    for number, word in refused.items():
        assert word in told[number]
