"""Random calls of memu-cli's repositories have the same answers on our database and on memu-cli's in-memory store."""

from __future__ import annotations

import random
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput
from locus_mysql.integrations.memu import RecallDatabase, RecallUserModel

from ....thoroughness import FULL
from ...conftest import MakeConfig

TEXTS = ("", "a", "A", "é", "\U00010000", "\uffff", "a b")
USERS = [{"user_id": user, "agent_id": agent} for user in ("ada", "bob") for agent in (None, "x")]
TRACKS = ("memory", "skill")
CALLS = 400


class Pair:
    """memu-cli's in-memory store and our database, which run the same calls; the ids differ, and are paired.

    Args:
        theirs: memu-cli's store.
        ours: Our database.
        chance: The source of randomness.
    """

    def __init__(self, theirs: Any, ours: Any, chance: random.Random) -> None:
        self.sides = (theirs, ours)
        self.chance = chance
        self.made: dict[str, list[tuple[str, str]]] = {"recall_file": [], "segment": [], "resource": []}
        self._names: dict[str, int] = {}

    def plain(self, answer: Any) -> Any:
        """Return an answer in a comparable form: numbers for ids, and no times."""
        if isinstance(answer, dict):
            return [self.plain(one) for one in answer.values()]
        if isinstance(answer, list | tuple):
            return [self.plain(one) for one in answer]
        if hasattr(answer, "model_dump"):
            fields = answer.model_dump(exclude={"created_at", "updated_at"})
            return sorted((name, self.plain(value)) for name, value in fields.items())
        if isinstance(answer, float):
            return round(answer, 5)
        return self._names.get(answer, answer) if isinstance(answer, str) else answer

    def call(self, repository: str, method: str, *args: Any, made: str = "", **given: Any) -> None:
        """Run a call on both sides, with each side's own ids in place of pairs, and compare the answers."""
        answers = []
        for place, side in enumerate(self.sides):
            own = {name: value[place] if isinstance(value, tuple) else value for name, value in given.items()}
            try:
                answers.append(getattr(getattr(side, repository), method)(*args, **own))
            except KeyError:
                answers.append("no such record")
        if made and hasattr(answers[0], "id"):
            ids = (answers[0].id, answers[1].id)
            if ids not in self.made[made]:
                self.made[made].append(ids)
                self._names |= dict.fromkeys(ids, len(self._names))
        theirs, ours = map(self.plain, answers)
        assert ours == theirs, (method, args, given)

    def embedding(self) -> list[float]:
        """Return a random embedding of exact 32-bit floats, sometimes an empty one."""
        return [] if self.chance.random() < 0.2 else [self.chance.randint(-9, 9) / 4 + 0.125 for _ in range(3)]

    def some(self, kind: str) -> tuple[str, str]:
        """Return the ids of a record of this kind, sometimes of one that does not exist."""
        made = self.made[kind]
        return self.chance.choice(made) if made and self.chance.random() < 0.9 else ("none", "none")

    def where(self) -> dict[str, Any] | None:
        """Return a random filter."""
        user = self.chance.choice(USERS)
        track = self.chance.choice(TRACKS)
        filters = (None, {}, user, {**user, "track": track}, {"user_id__in": ["bob", "ada"]}, {"track__in": track})
        return self.chance.choice((*filters, {"user_id": "ada", "agent_id": "x"}, {"track__in": []}))


def steps(pair: Pair) -> dict[str, tuple[int, Callable[[], None]]]:
    """Return the calls, with the weight of each."""
    chance = pair.chance

    def page() -> None:
        where = pair.where()
        limit = chance.randint(1, 4)
        both = [side.recall_file_repo.list_recall_files_page(where, after=None, limit=limit) for side in pair.sides]
        assert pair.plain([[(one.track, one.name) for one in files] for files, _ in both[:1]]) == pair.plain(
            [[(one.track, one.name) for one in files] for files, _ in both[1:]]
        )
        assert [after and after[:2] for _, after in both[:1]] == [after and after[:2] for _, after in both[1:]]

    def search() -> None:
        """Compare the scores of all resources; equal ones have no order."""
        where, query = pair.where(), [chance.randint(1, 9) / 4 for _ in range(3)]
        theirs, ours = [
            {pair.plain(id): score for id, score in side.resource_repo.vector_search_resources(query, 1_000, where)}
            for side in pair.sides
        ]
        assert ours == pytest.approx(theirs, abs=1e-5)

    def rename() -> None:
        """Change a file. A name that is taken is refused here, and allowed in memory: it is left out."""
        files = list(pair.sides[0].recall_files.values())
        name = chance.choice((None, *TEXTS))
        ids = pair.some("recall_file")
        own = pair.sides[0].recall_files.get(ids[0])
        scope = ("track", "user_id", "agent_id")
        taken = own is not None and any(
            one.name == name and one.id != own.id and all(getattr(one, at) == getattr(own, at) for at in scope)
            for one in files
        )
        if taken:
            with pytest.raises(InvalidInput, match="another recall file"):
                pair.sides[1].recall_file_repo.update_recall_file(recall_file_id=ids[1], name=name)
            return
        given = {"description": chance.choice((None, *TEXTS)), "content": chance.choice((None, *TEXTS))}
        embedding = chance.choice((None, pair.embedding()))
        pair.call("recall_file_repo", "update_recall_file", recall_file_id=ids, name=name, embedding=embedding, **given)

    files, segments, resources = "recall_file_repo", "recall_file_segment_repo", "resource_repo"
    return {
        "file": (
            8,
            lambda: pair.call(
                *(files, "get_or_create_recall_file"),
                name=chance.choice(TEXTS),
                description=chance.choice(TEXTS),
                embedding=pair.embedding(),
                user_data=chance.choice(USERS),
                track=chance.choice(TRACKS),
                made="recall_file",
            ),
        ),
        "update": (5, rename),
        "page": (3, page),
        "segment": (
            6,
            lambda: pair.call(
                *(segments, "create_segment"),
                recall_file_id=pair.some("recall_file"),
                text=chance.choice(TEXTS),
                embedding=pair.embedding() or None,
                user_data=chance.choice(USERS),
                track=chance.choice(TRACKS),
                made="segment",
            ),
        ),
        "resource": (
            4,
            lambda: pair.call(
                *(resources, "create_resource"),
                url=chance.choice(TEXTS),
                local_path=chance.choice(TEXTS),
                caption=chance.choice((None, *TEXTS)),
                embedding=pair.embedding() or None,
                user_data=chance.choice(USERS),
                track=chance.choice((None, *TRACKS)),
                made="resource",
            ),
        ),
        "list files": (1, lambda: pair.call(files, "list_recall_files", pair.where())),
        "list segments": (1, lambda: pair.call(segments, "list_segments", pair.where())),
        "list resources": (1, lambda: pair.call(resources, "list_resources", pair.where())),
        "of file": (
            1,
            lambda: pair.call(segments, "list_segments_for_file", recall_file_id=pair.some("recall_file")),
        ),
        "search": (2, search),
        "delete segment": (1, lambda: pair.call(segments, "delete_segment", segment_id=pair.some("segment"))),
        "delete resource": (1, lambda: pair.call(resources, "delete_resource", resource_id=pair.some("resource"))),
        "delete of file": (
            1,
            lambda: pair.call(segments, "delete_segments_for_file", recall_file_id=pair.some("recall_file")),
        ),
        "clear files": (0, lambda: pair.call(files, "clear_recall_files", pair.where())),
    }


def test_random_calls_have_the_same_answers_as_in_memory(make_config: MakeConfig) -> None:
    store = import_module("memu.database.inmemory.repo").InMemoryStore
    for seed in range(30 if FULL else 2):
        chance = random.Random(seed)
        config = make_config(driver="pymysql", tenant=f"seed {seed}")
        with RecallDatabase(config, user_model=RecallUserModel) as ours:
            pair = Pair(store(scope_model=RecallUserModel), ours, chance)
            calls = steps(pair)
            names, weights = list(calls), [weight for weight, _ in calls.values()]
            for name in chance.choices(names, weights, k=CALLS):
                calls[name][1]()
            assert pair.plain(ours.recall_files.copy()) == pair.plain(pair.sides[0].recall_files)
            assert pair.plain(ours.segments.copy()) == pair.plain(pair.sides[0].segments)
            for name in ("clear files", "delete of file"):
                calls[name][1]()
            for repository, method in (
                ("recall_file_repo", "clear_recall_files"),
                ("recall_file_segment_repo", "clear_segments"),
                ("resource_repo", "clear_resources"),
            ):
                pair.call(repository, method, {"user_id": "ada"})
                pair.call(repository, method)
            assert len(ours.recall_files) == len(ours.segments) == len(ours.resources) == 0
