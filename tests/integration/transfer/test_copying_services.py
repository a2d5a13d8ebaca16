"""Copies to and from Locus' checkpointers on S3, OCI Object Storage and OpenSearch, and those of users' functions.

Locus' classes are the real ones; the services are stand-ins, see `foreign_services`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.backends.file import FileCheckpointer

from locus_mysql import MySQLBackend, SyncMySQLCheckpointer, copy_threads
from locus_mysql.cli.main import main
from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.transfer.checkpointers import time_of
from locus_mysql.integrations.locus.transfer.locations import Location
from locus_mysql.runtime.server_times import as_sql_time

from ..conftest import MakeConfig
from . import foreign_services
from .conftest import contents, conversation, kept, save_all
from .foreign_services import Objects

pytestmark = pytest.mark.kept_tables("agents")

#: A checkpointer, and the objects in its service.
Bucket = tuple[Any, Objects]

PREFIX = "locus/checkpoints/"

#: Ids that are prefixes of each other, or that code for paths and lists might mishandle.
THREADS = ["a", "a/b", "a/b/c", "support/42", "ünï ☃", "x.meta", "_latest", "..a", "a b"]


@pytest.fixture(params=["S3", "OCI"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return foreign_services.s3(monkeypatch) if request.param == "S3" else foreign_services.oci()


async def test_all_of_a_bucket_comes_along_in_the_order_in_which_it_was_saved(
    bucket: Bucket, config: MySQLConfig
) -> None:
    backend, objects = bucket
    states = {thread: conversation(number) for number, thread in enumerate(THREADS, 2)}
    for thread in THREADS:
        # Sorted by name, these ids are in reverse order, and S3's times have a resolution of one second.
        for index, state in enumerate(states[thread]):
            await backend.save(state, thread, f"{99 - index}", {"place": index, "checkpoint_id": "mine"})
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(backend, target, verify=True)
        assert report.complete, report
        assert (report.threads, report.copied, report.verified) == (9, 54, 54)
        assert not report.not_given
        assert {*await target.list_threads()} == {*THREADS}
        for thread in THREADS:
            saved = [(f"{99 - index}", state) for index, state in enumerate(states[thread])]
            assert await contents(target, thread) == saved
            about = [json.loads(objects.kept[f"{PREFIX}{thread}/{one}.meta.json"][0]) for one, _ in saved]
            reported = [
                (as_sql_time(time), metadata["place"], metadata["checkpoint_id"])
                for _, _, time, metadata in await kept(config, thread)
            ]
            assert reported == [
                (as_sql_time(time_of(one.get("created_at") or one["updated_at"])), index, "mine")  # type: ignore[arg-type]
                for index, one in enumerate(about)
            ]
        again = await copy_threads(backend, target)
        assert (again.copied, again.present, again.complete) == (0, 54, True)


async def test_into_a_bucket_again_and_again_and_back(
    bucket: Bucket, config: MySQLConfig, make_config: MakeConfig
) -> None:
    backend, _ = bucket
    back = make_config(tenant="back")
    async with MySQLCheckpointer(config) as source, MySQLCheckpointer(back) as target:
        for thread in THREADS:
            await save_all(source, thread, conversation(3))
        for copied, present in ((27, 0), (0, 27)):
            report = await copy_threads(source, backend, verify=True)
            assert report.complete, report
            assert (report.copied, report.present, report.verified) == (copied, present, 27)
        await save_all(source, "a/b", conversation(5)[3:], "late")
        report = await copy_threads(source, backend)
        assert (report.copied, report.present) == (2, 27)
        report = await copy_threads(backend, target, verify=True)
        assert (report.copied, report.complete) == (29, True)
        for thread in THREADS:
            assert await contents(target, thread) == await contents(source, thread)


async def test_names_that_two_checkpoints_would_share_in_a_bucket_are_refused(
    bucket: Bucket, config: MySQLConfig
) -> None:
    backend, _ = bucket
    first, second = conversation(2)
    reported: list[str] = []
    async with MySQLCheckpointer(config) as source:
        await source.save(first, "a/b", "c")
        await source.save(second, "a", "b/c")
        await source.save(second, "a", "x.meta")
        report = await copy_threads(source, backend, notify=reported.append, at_once=1)
        assert (report.copied, report.left_out) == (1, 2)
        assert sum("something else under the same key" in line for line in reported) == 2
        assert (await backend.load("a", "b/c")) == second  # the checkpoint copied first


async def test_damaged_and_missing_objects_are_left_out_and_named(bucket: Bucket, config: MySQLConfig) -> None:
    backend, objects = bucket
    await save_all(backend, "t/u", conversation(5))
    objects.put(f"{PREFIX}t/u/cp-1.json", b"{not JSON")
    objects.put(f"{PREFIX}t/u/cp-2.meta.json", b"[1]")
    del objects.kept[f"{PREFIX}t/u/cp-3.meta.json"]
    objects.put(f"{PREFIX}t/u/stray.json", b"\xff")
    objects.put(f"{PREFIX}t/readme.txt", b"not ours")
    reported: list[str] = []
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(backend, target, notify=reported.append)
        assert (report.threads, report.copied, report.left_out, report.complete) == (1, 4, 2, False)
        assert [one for one, *_ in await kept(config, "t/u")] == ["cp-0", "cp-2", "cp-3", "cp-4"]
    assert {name for line in reported for name in ("cp-1", "stray") if repr(name) in line} == {"cp-1", "stray"}


async def test_opensearch_both_ways(config: MySQLConfig, make_config: MakeConfig) -> None:
    adapter, client = foreign_services.opensearch()
    back = make_config(tenant="back")
    async with MySQLCheckpointer(config) as source, MySQLCheckpointer(back) as target:
        for thread in ("a", "a:b", "support/42", "ünï ☃"):
            await save_all(source, thread, conversation(4))
        for copied, present in ((16, 0), (0, 16)):
            report = await copy_threads(source, adapter, verify=True)
            assert (report.copied, report.present, report.verified, report.complete) == (copied, present, 16, True)
        report = await copy_threads(adapter, target, verify=True)
        assert (report.threads, report.copied, report.complete) == (4, 16, True)
        assert not report.not_given
        for thread in ("a", "a:b", "support/42", "ünï ☃"):
            assert await contents(target, thread) == await contents(source, thread)
        client.documents.update(
            (f"other{number}", {"thread_id": f"other{number}", "data": {}, "updated_at": ""}) for number in range(9_990)
        )
        report = await copy_threads(adapter, target)
        assert report.not_given == {"what lies beyond the first 10,000 keys, as it lists no more"}


class Plain:
    """A user's own backend, with only the methods that the adapter calls."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def save(self, thread_id: str, data: dict[str, Any]) -> None:
        self.kept[thread_id] = json.dumps(data)

    async def load(self, thread_id: str) -> dict[str, Any] | None:
        found = self.kept.get(thread_id)
        return None if found is None else dict(json.loads(found))

    async def delete(self, thread_id: str) -> bool:
        return self.kept.pop(thread_id, None) is not None

    async def exists(self, thread_id: str) -> bool:
        return thread_id in self.kept

    async def list_threads(self) -> list[str]:
        return list(self.kept)


async def test_a_backend_of_somebodys_own_whose_list_takes_nothing(config: MySQLConfig) -> None:
    plain = StorageBackendAdapter(Plain())
    await save_all(plain, "t", conversation(3))
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(plain, target, verify=True)
        assert (report.copied, report.verified, report.complete) == (3, 3, True)


@pytest.mark.kept_tables("agents", "current")
async def test_our_own_backend_distinguishes_upper_from_lower_case(config: MySQLConfig) -> None:
    async with MySQLCheckpointer(config) as source, MySQLBackend(config) as backend:
        for thread in ("user-Bob", "user-bob", "naïve", "naive"):
            await save_all(source, thread, conversation(2, thread))
        adapter = StorageBackendAdapter(backend)
        report = await copy_threads(source, adapter, verify=True)
        assert (report.copied, report.verified, report.failed) == (8, 8, 0)
        for thread in ("user-Bob", "user-bob", "naïve", "naive"):
            assert await contents(adapter, thread) == await contents(source, thread)


def open_files(folder: str) -> FileCheckpointer:
    """A user's own function that opens a checkpointer."""
    return FileCheckpointer(folder)


def open_ours(tenant: str) -> MySQLCheckpointer:
    """A user's own function that opens this package's checkpointer."""
    return MySQLCheckpointer(MySQLConfig.from_env(tenant=tenant))


def open_ours_that_block(tenant: str) -> SyncMySQLCheckpointer:
    """The same, for the blocking checkpointer."""
    return SyncMySQLCheckpointer(MySQLConfig.from_env(tenant=tenant))


@pytest.mark.parametrize("function", [open_ours, open_ours_that_block])
async def test_functions_open_sides(
    function: Callable[..., Any], config: MySQLConfig, make_config: MakeConfig, tmp_path: Path
) -> None:
    files = FileCheckpointer(tmp_path)
    await save_all(files, "t", conversation(3))
    ours = Location(f"{__name__}:{function.__name__}", {"tenant": "acme"})
    report = await copy_threads(Location(f"{__name__}:open_files", {"folder": str(tmp_path)}), ours, verify=True)
    assert (report.copied, report.verified, report.complete) == (3, 3, True)
    assert not report.not_kept  # keeps ids, order, metadata and times
    acme = await kept(make_config(tenant="acme"), "t")
    assert [one for one, *_ in acme] == ["cp-0", "cp-1", "cp-2"]
    times = [json.loads((tmp_path / "t" / f"cp-{index}.json").read_text())["created_at"] for index in range(3)]
    assert [as_sql_time(time) for _, _, time, _ in acme] == [as_sql_time(time_of(one)) for one in times]  # type: ignore[arg-type]
    assert (await copy_threads(ours, Location("mysql"), verify=True)).copied == 3
    assert await kept(config, "t") == acme


@pytest.mark.kept_tables("agents")
def test_functions_open_sides_for_the_command(
    config: MySQLConfig, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncMySQLCheckpointer(make_config(tenant="acme")) as source:
        source.save(conversation(1)[0], "t", "cp")
    side = f"{__name__}:open_ours"
    assert main(["copy", "--from", side, "--from-option", "tenant=acme", "--to", f"file:{tmp_path}"]) == 0
    assert "1 thread: 1 checkpoint copied" in capsys.readouterr().out
    assert main(["copy", "--from", side, "--from-option", "tenant=acme", "--to", "mysql", "--tenant", "acme"]) == 1
    assert "Both sides" in capsys.readouterr().err
