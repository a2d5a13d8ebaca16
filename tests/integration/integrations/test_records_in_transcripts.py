"""Records that the frameworks' stores wrote as transcripts: copies, exports and imports, as the commands make them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.cli import main as cli
from locus_mysql.errors import InvalidInput
from locus_mysql.families.registry import find_family
from locus_mysql.inspection import Inspector

from ...faults.workloads import WORKLOADS, Workload
from ..commands import dsn_of
from ..conftest import EVERY_SIDE, MakeConfig

pytestmark = pytest.mark.kept_tables("transcripts")

OF_FRAMEWORKS = [
    workload for workload in WORKLOADS if workload.family == "transcripts" and workload.title != "transcripts"
]
KINDS = {
    *("claude-agent-sdk", "google-adk", "google-adk-state", "openai-agents", "strands"),
    *("pydantic-ai", "pydantic-ai-memory", "pydantic-ai-steps"),
}


@pytest.mark.parametrize("workload", OF_FRAMEWORKS)
def test_what_a_framework_stored_is_never_copied_to_where_other_software_reads_and_is_imported_whole(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: type[Workload]
) -> None:
    side = next(side for side in EVERY_SIDE if workload.stores.of(side) is not None)
    config = make_config(driver=side.rpartition("-")[0])
    stored = asyncio.run(_written(workload, config, side))
    asyncio.run(_refuse_copies(config))

    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    file = str(tmp_path / "transcripts.jsonl")
    assert cli.main(["export", file, "--family", "transcripts"]) == 0
    assert cli.main(["import", file, "--tenant", "acme"]) == 0
    moved = make_config(driver=config.driver, tenant="acme")
    assert asyncio.run(_stored(workload(moved, side))) == stored


async def _written(workload: type[Workload], config: MySQLConfig, side: str) -> Any:
    """Let the framework's store write, and return what another process finds."""
    framework = workload(config, side)
    for call in framework.calls():
        await call()
    await framework.close()
    return await _stored(workload(config, side))


async def _stored(framework: Workload) -> Any:
    try:
        return await framework.stored()
    finally:
        await framework.close()


async def _refuse_copies(config: MySQLConfig) -> None:
    """Try to copy each transcript to each other kind; nothing is written."""
    changes = find_family("transcripts").changes(config)
    assert changes is not None
    async with Inspector(config) as inspector:
        threads = [row.thread_id for row in (await inspector.threads("transcripts")).items]
        counts = await inspector.stored("transcripts")
        assert threads
        for thread in threads:
            own, _, name = thread.partition("/")
            assert own in KINDS
            for kind in KINDS - {own}:
                copying = changes.copy(thread, f"{kind}/{name}")
                with pytest.raises(InvalidInput, match="other software reads"):
                    await inspector.database.asynchronous.run(copying)
        assert await inspector.stored("transcripts") == counts
