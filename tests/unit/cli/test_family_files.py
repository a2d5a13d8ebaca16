"""The commands export and import any registered family without code for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from locus_mysql.cli.main import main
from locus_mysql.dialect import Schema
from locus_mysql.families.family import refuse_others
from locus_mysql.families.registry import find_family, register_family, unregister_family
from locus_mysql.runtime.checksummed_jsonl import Head, checksummed
from locus_mysql.runtime.transfer import RecordPage, TransferReport

#: The family of this test needs no server: it stores its units in a dict.
DSN = ["--dsn", "mysql://nobody@127.0.0.1:1/nowhere", "--driver", "pymysql"]


class Toys:
    """Toys by their names, as a family, its transfer, its source and its target."""

    name = "toys"
    title = "Toys"
    users = "nobody"
    holds_threads = False
    vacuumed_by_age = False
    on_request = True
    noun = "toy"
    constants = False
    head = checksummed({"format": "locus-mysql toys 1"})

    def __init__(self, toys: dict[str, int]) -> None:
        self.toys = toys
        self._overwrite = False

    def schema(self, config: Any) -> Schema:
        return Schema("toys", 1, ())

    def transfer(self, config: Any) -> Toys:
        return self

    def source(self, **selection: Any) -> Toys:
        refuse_others(selection, "toys")
        return self

    def accepts(self, head: Head) -> bool:
        return head.format == "locus-mysql toys 1"

    def target(self, head: Head, *, overwrite: bool = False) -> Toys:
        self._overwrite = overwrite
        return self

    def position_of(self, content: Mapping[str, Any]) -> Any:
        return content["name"]

    async def count(self, database: Any) -> int:
        return len(self.toys)

    async def page(self, database: Any, after: Any, limit: int) -> RecordPage:
        names = [name for name in sorted(self.toys) if after is None or name > after][:limit]
        lines = [checksummed({"name": name, "price": self.toys[name]}) for name in names]
        return RecordPage(lines, names[-1] if names else None)

    def read(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        return content

    async def write(self, database: Any, records: Sequence[Mapping[str, Any]], report: TransferReport) -> None:
        for one in records:
            stored = self.toys.get(one["name"])
            if stored == one["price"]:
                report.present += 1
            elif stored is None or self._overwrite:
                self.toys[one["name"]] = one["price"]
                report.copied += 1
            else:
                report.differ(f"Toy {one['name']!r} differs.")


@pytest.fixture
def toys() -> Iterator[Toys]:
    family = Toys({f"toy {number:03}": number for number in range(250)})
    register_family(family)  # type: ignore[arg-type]  # what these commands need of a family
    yield family
    unregister_family("toys")


def test_a_registered_family_is_exported_and_imported(
    toys: Toys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "toys.jsonl")
    assert main(["export", file, "--family", "toys", *DSN]) == 0
    assert "Exported 250 toys." in capsys.readouterr().err
    lines = [json.loads(line) for line in (tmp_path / "toys.jsonl").read_text().splitlines()]
    assert [line["price"] for line in lines[1:-1]] == list(range(250))
    assert lines[-1]["end"] == {"items": 250}
    before = dict(toys.toys)
    del toys.toys["toy 007"]
    toys.toys["toy 008"] = 80
    assert main(["import", file, *DSN]) == 1
    printed = capsys.readouterr()
    assert printed.out == "Imported 1 toy, 248 already present, 1 different in the target.\n"
    assert "Toy 'toy 008' differs." in printed.err
    assert main(["import", file, "--overwrite", *DSN]) == 0
    assert toys.toys == before


@pytest.mark.parametrize("command", ["import", "copy"])
def test_with_keys_no_record_is_written_into_a_family_that_does_not_encrypt(
    command: str, toys: Toys, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "toys.jsonl")
    assert main(["export", file, "--family", "toys", *DSN]) == 0
    toys.toys.clear()
    monkeypatch.setenv("LOCUS_MYSQL_ENCRYPTION", f"2026-11={'A' * 43}=")
    sides = [f"mysql://nobody@127.0.0.1:1/{database}" for database in ("source", "target")]
    copy = ["copy", "--family", "toys", "--from", sides[0], "--to", sides[1]]
    assert main(["import", file, *DSN] if command == "import" else copy) == 1
    assert "Tables of family 'toys' do not support encryption" in capsys.readouterr().err
    assert toys.toys == {}


def test_an_export_that_a_family_cannot_select_is_refused(
    toys: Toys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(tmp_path / "file"), "--family", "toys", "--thread", "t", *DSN]) == 1
    assert "An export of toys cannot be limited by threads." in capsys.readouterr().err
    assert not (tmp_path / "file").exists()


def test_a_family_without_exports_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_family("working"), "transfer", lambda config: None, raising=False)
    assert main(["export", str(tmp_path / "file"), "--family", "working", *DSN]) == 1
    assert "'working' cannot be exported" in capsys.readouterr().err
