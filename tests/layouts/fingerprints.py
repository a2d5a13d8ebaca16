"""Fingerprints of layouts: a digest of the CREATE TABLE statements of each family, by the number of the layout."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.families.family import HasUserModel
from locus_mysql.families.registry import families

FILE = Path(__file__).with_name("fingerprints.json")

#: The options that change the tables.
OPTIONS = ({}, {"search": False}, {"search_parser": "ngram"})


def all_schemas() -> dict[str, list[Schema]]:
    """Return the schemas of each family with each of `OPTIONS`."""
    configs = [MySQLConfig(database="app", **options) for options in OPTIONS]  # type: ignore[arg-type]
    found = {}
    for family in families():
        one = family.with_fields(["user_id"]) if isinstance(family, HasUserModel) else family
        found[family.name] = [one.schema(config) for config in configs]
    return found


def fingerprint(schemas: list[Schema]) -> str:
    """Return the digest of the tables, whatever the spaces in their statements."""
    texts = ["\n".join(" ".join(one.sql.split()) for one in schema.create()) for schema in schemas]
    return hashlib.sha256("\n\n".join(texts).encode()).hexdigest()[:32]


def recorded() -> dict[str, dict[str, str]]:
    """Return the recorded fingerprints of all layouts: by family, then by number."""
    known: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return known


def record() -> None:
    """Record the fingerprints of layouts with new numbers; those that are recorded stay, as layouts are frozen."""
    known = recorded()
    for name, schemas in all_schemas().items():
        known.setdefault(name, {}).setdefault(str(schemas[0].layout_version), fingerprint(schemas))
    FILE.write_text(json.dumps(known, indent=2) + "\n")
