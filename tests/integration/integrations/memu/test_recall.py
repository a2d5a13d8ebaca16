"""The contract of memu-cli's repositories, with every driver, synchronous and asynchronous."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from locus_mysql.errors import ConfigError, InvalidInput
from locus_mysql.integrations.memu import build_recall_database

from ...commands import dsn_of
from ...conftest import MakeConfig
from .conftest import ADA, BOB, AnyMemu, AnyRecall, Make
from .test_contract import HOSTILE

#: The database's attributes, with the protocols in memu-cli that they implement.
PROTOCOLS = {
    "resource_repo": "ResourceRepo",
    "recall_file_repo": "RecallFileRepo",
    "recall_file_segment_repo": "RecallFileSegmentRepo",
}


async def test_pages_follow_each_other_in_the_order_of_track_name_and_id(recall: AnyRecall) -> None:
    names = [*HOSTILE, "\uffff", "\U00010000", "a", "B", ""]
    for name in names:
        for track in ("skill", "memory"):
            for user in (ADA, BOB):
                await recall.file(name, user, track=track)
    stored = (await recall.recall_file_repo.list_recall_files()).values()
    repo = recall.recall_file_repo
    for where in (None, ADA, {"track": "skill", "user_id__in": ["ada", "bob"]}):
        wanted = [
            one
            for one in stored
            if where is None or ("track" in where and one.track == "skill") or where.get("user_id") == one.user_id
        ]
        wanted.sort(key=lambda one: (one.track, one.name, one.id))
        for limit in (1, 7, len(wanted) - 1, len(wanted), 500):
            found: list[Any] = []
            after, pages = None, 0
            while True:
                page, after = await repo.list_recall_files_page(where, after=after, limit=limit)
                found, pages = found + page, pages + 1
                if after is None:
                    break
                assert len(page) == limit
                assert after == (page[-1].track, page[-1].name, page[-1].id)
            assert found == wanted
            assert pages == -(-len(wanted) // limit)
    nothing = await repo.list_recall_files_page({"user_id": "none"}, after=["memory", "", ""], limit=1)
    assert nothing == ([], None)
    for after in ("memory", ("memory", "n"), ("memory", "n", 5), ("memory", "n", "\ud800")):
        with pytest.raises(InvalidInput):
            await repo.list_recall_files_page(None, after=after, limit=1)
    for limit in (0, -1, 1.5, True):
        with pytest.raises(InvalidInput, match="limit"):
            await repo.list_recall_files_page(None, after=None, limit=limit)


async def test_hostile_texts_are_stored_exactly_or_refused(recall: AnyRecall, make_recall: Make) -> None:
    other = make_recall()
    for text in HOSTILE:
        user = {"user_id": text}
        file = await recall.file(text, user, track=text, description=text)
        segment = await recall.segment(text, text, user, track=text)
        resource = await recall.resource(text, user, local_path=text, caption=text, track=text)
        assert await other.recall_file_repo.list_recall_files({**user, "track": text, "name": text}) == {file.id: file}
        assert await other.recall_file_segment_repo.list_segments_for_file(text) == [segment]
        assert await other.resource_repo.list_resources({"track": text}) == {resource.id: resource}
        assert (file.name, file.description, segment.text, resource.url) == (text,) * 4
    files = await other.recall_file_repo.list_recall_files()
    assert len(files) == len(HOSTILE)
    for call in (
        lambda: recall.file("n" * 256, ADA),
        lambda: recall.file("n", ADA, track="t" * 65),
        lambda: recall.file("\ud800", ADA),
        lambda: recall.file("n", ADA, embedding=[float("inf")]),
        lambda: recall.file("n", {"user_id": "u" * 256}),
        lambda: recall.file("n", {}),
        lambda: recall.file("n", {**ADA, "other": 1}),
        lambda: recall.segment("i" * 37, "text", ADA),
        lambda: recall.segment("i", None, ADA),  # type: ignore[arg-type]
        lambda: recall.resource("u" * 2_049, ADA),
        lambda: recall.recall_file_repo.list_recall_files({"modality": "x"}),
        lambda: recall.recall_file_segment_repo.clear_segments({"user_id": 5}),
    ):
        with pytest.raises(InvalidInput):
            await call()
    assert await other.recall_file_repo.list_recall_files() == files


async def test_both_protocols_have_the_same_resources(recall: AnyRecall, make_memu: Make) -> None:
    memu: AnyMemu = make_memu()
    new = await recall.resource("new", ADA, embedding=[1.0, 0.0])
    old = await memu.resource("old", ADA)
    assert {one.url: (one.modality, one.track) for one in (await memu.resources.copy()).values()} == {
        "new": ("", "workspace"),
        "old": ("text", None),
    }
    assert {one.url: one.track for one in (await recall.resources.copy()).values()} == {"new": "workspace", "old": None}
    await memu.resource_repo.clear_resources({"track": "workspace"})
    assert await recall.resources.get(new.id) is None
    await recall.resource_repo.delete_resource(old.id)
    assert await memu.resources.copy() == {}


def test_the_protocols_of_memu_cli_hold(make_config: MakeConfig) -> None:
    interfaces = import_module("memu.database.interfaces")
    repositories = import_module("memu.database.repositories")
    settings = import_module("memu.app.settings")
    with pytest.raises(ConfigError, match="names no database"):
        build_recall_database(config=settings.DatabaseConfig())
    store = settings.MetadataStoreConfig(dsn=dsn_of(make_config()))
    with build_recall_database(config=settings.DatabaseConfig(metadata_store=store), driver="pymysql") as database:
        assert isinstance(database, interfaces.Database)
        for attribute, name in PROTOCOLS.items():
            protocol, ours = getattr(repositories, name), getattr(database, attribute)
            assert isinstance(ours, protocol)
            for method, function in inspect.getmembers(protocol, inspect.isfunction):
                if not method.startswith("_"):
                    theirs = list(inspect.signature(function).parameters.values())[1:]
                    mine = list(inspect.signature(getattr(ours, method)).parameters.values())
                    assert [(one.name, one.kind, one.default) for one in mine] == [
                        (one.name, one.kind, one.default) for one in theirs
                    ], method
