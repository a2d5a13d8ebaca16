"""The tables of memU's metadata store.

They have the columns of memU's own document about MySQL, with embeddings as bytes instead of JSON text, and the columns
and tables that its later releases added. The names of columns that memU does not have begin with ``locus_``. The
releases from 1.0 to 1.5.1 (`memu-py`) store resources, items, categories and relations; `memu-cli` stores resources,
recall files and segments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ...config import MySQLConfig
from ...dialect.schema import NeededColumn, Schema, Table
from ...dialect.statement import fill
from ...records import ledger

#: Written into the comment of each table. See "Changing the layout of the tables" in CONTRIBUTING.md.
LAYOUT_VERSION = 1

#: The tables by their roles, in the order of their creation.
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "resources": "resources",
        "categories": "memory_categories",
        "items": "memory_items",
        "links": "category_items",
        "recall_files": "recall_files",
        "segments": "recall_file_segments",
        "ledger": "memu_ledger",
    }
)

#: The columns that have a seal of their own, as methods change them, or read them without the others. The other columns
#: of `CORE` have one seal together, without the times, which the server writes, and the id, which all seals cover.
CHANGED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "resources": ("embedding",),
        "items": ("resource_id", "memory_type", "summary", "embedding", "extra"),
        "categories": ("name", "description", "summary", "embedding"),
        "links": (),
        "recall_files": ("name", "description", "content", "embedding"),
        "segments": ("embedding",),
    }
)

_ENGINE = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"

# What all records have. locus_seals: see `seals`.
_RECORD = """(
  id           VARCHAR(36)   NOT NULL,
  created_at   DATETIME(6)   NOT NULL,
  updated_at   DATETIME(6)   NOT NULL,
  locus_tenant VARCHAR(128)  NOT NULL,
  locus_seals  JSON          NOT NULL,"""

# memu-py sets no track, and memu-cli no modality, which is then empty.
RESOURCES = """
  url          VARCHAR(2048) NOT NULL,
  modality     VARCHAR(64)   NOT NULL,
  local_path   VARCHAR(1024) NOT NULL,
  caption      LONGTEXT      NULL,
  track        VARCHAR(64)   NULL,
  embedding    MEDIUMBLOB    NULL,{scope}
  PRIMARY KEY (id){scope_indexes}
"""

# locus_scope is a digest of tenant and scope, as a unique key does not cover columns that are NULL.
CATEGORIES = """
  name         VARCHAR(255)  NOT NULL,
  description  LONGTEXT      NOT NULL,
  summary      LONGTEXT      NULL,
  embedding    MEDIUMBLOB    NULL,
  locus_scope  BINARY(16)    NOT NULL,{scope}
  PRIMARY KEY (id),
  UNIQUE KEY locus_once (locus_scope, name){scope_indexes}
"""

# locus_hash is the content hash of an item that is reinforced instead of stored again. locus_mark is a random number
# of each embedding, by which a process recognises those that it has read; locus_dims is the width of the embedding.
# Both are in the index of a scope field, so that a search whose embeddings are cached reads no rows. ref_id may be of
# any length, so its beginning is indexed.
ITEMS = """
  resource_id  VARCHAR(36)   NULL,
  memory_type  VARCHAR(32)   NOT NULL,
  summary      LONGTEXT      NOT NULL,
  happened_at  DATETIME(6)   NULL,
  extra        JSON          NOT NULL,
  embedding    MEDIUMBLOB    NULL,
  locus_scope  BINARY(16)    NOT NULL,
  locus_hash   CHAR(16)      NULL,
  locus_dims   SMALLINT UNSIGNED NULL,
  locus_mark   BIGINT UNSIGNED NULL,
  locus_ref    VARCHAR(128)  AS (LEFT(JSON_UNQUOTE(JSON_EXTRACT(extra, '$.ref_id')), 128)) VIRTUAL,{scope}
  PRIMARY KEY (id),
  UNIQUE KEY locus_once (locus_scope, locus_hash),
  KEY locus_refs (locus_ref, locus_tenant),
  KEY resource_id (resource_id){mark_indexes},
  FOREIGN KEY (resource_id) REFERENCES `{resources}` (id) ON DELETE CASCADE
"""

LINKS = """
  item_id      VARCHAR(36)   NOT NULL,
  category_id  VARCHAR(36)   NOT NULL,{scope}
  PRIMARY KEY (id),
  UNIQUE KEY idx_category_items_unique (item_id, category_id),
  KEY category_id (category_id){scope_indexes},
  FOREIGN KEY (item_id) REFERENCES `{items}` (id) ON DELETE CASCADE,
  FOREIGN KEY (category_id) REFERENCES `{categories}` (id) ON DELETE CASCADE
"""

# The index of a scope field has the columns by which pages of recall files are ordered.
RECALL_FILES = """
  name         VARCHAR(255)  NOT NULL,
  track        VARCHAR(64)   NOT NULL,
  description  LONGTEXT      NOT NULL,
  content      LONGTEXT      NULL,
  embedding    MEDIUMBLOB    NULL,
  locus_scope  BINARY(16)    NOT NULL,{scope}
  PRIMARY KEY (id),
  UNIQUE KEY locus_once (locus_scope, track, name){name_indexes}
"""

# No foreign key: memU's protocol clears files and segments independently, and stores segments of unknown files.
SEGMENTS = """
  recall_file_id VARCHAR(36) NOT NULL,
  track        VARCHAR(64)   NOT NULL,
  text         LONGTEXT      NOT NULL,
  embedding    MEDIUMBLOB    NULL,{scope}
  PRIMARY KEY (id),
  KEY recall_file_id (recall_file_id, locus_tenant){scope_indexes}
"""

_DEFINITIONS = {
    "resources": _RECORD + RESOURCES,
    "categories": _RECORD + CATEGORIES,
    "items": _RECORD + ITEMS,
    "links": _RECORD + LINKS,
    "recall_files": _RECORD + RECALL_FILES,
    "segments": _RECORD + SEGMENTS,
}

_COLUMN = re.compile(r"^  ([a-z]\w*) +([A-Z]+)(?:\((\d+)\))?", re.MULTILINE)
_NULL = re.compile(r"^  ([a-z]\w*) +[A-Z]\S* +NULL", re.MULTILINE)

#: The columns of a record, without those of its scope and those that memU does not have.
CORE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        role: tuple(name for name, _, _ in _COLUMN.findall(text) if not name.startswith("locus_"))
        for role, text in _DEFINITIONS.items()
    }
)

#: Those that may be NULL.
OPTIONAL: Mapping[str, frozenset[str]] = MappingProxyType(
    {role: frozenset(_NULL.findall(text)) for role, text in _DEFINITIONS.items()}
)

#: The maximum lengths of short texts, in characters, by the columns' names.
LIMITS: Mapping[str, int] = MappingProxyType(
    {
        name: int(limit)
        for text in _DEFINITIONS.values()
        for name, type, limit in _COLUMN.findall(text)
        if type == "VARCHAR"
    }
)


#: The display width of an integer, which OceanBase shows, and MySQL before 8.0.19.
_INTEGER_WIDTH = re.compile(r"(?<=INT)\(\d+\)")

_KINDS = {"BIGINT": "int", "TINYINT": "bool", "CHAR(36)": "uuid", "DATETIME(6)": "datetime"}


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column for a field of the user model.

    Args:
        name: The unquoted name.
        type: The SQL type.
    """

    name: str
    type: str

    @property
    def kind(self) -> str:
        """The kind of value, as the command line names it."""
        return kind_of(self.type)


def kind_of(type: str) -> str:
    """Return the kind of value of an SQL type, as the command line names it."""
    return _KINDS.get(_INTEGER_WIDTH.sub("", type.upper()), "str")


def table_names(table_prefix: str) -> dict[str, str]:
    """Return the unquoted names of the tables by their roles."""
    return {role: table_prefix + name for role, name in NAMES.items()}


def memu_schema(table_prefix: str, scope: Sequence[ScopeColumn]) -> Schema:
    """Return the tables of memU's metadata store.

    Args:
        table_prefix: The prefix of their names.
        scope: The columns of the user model's fields; each is indexed.
    """
    names = table_names(table_prefix)
    columns = "".join(f"\n  `{column.name}` {column.type} NULL," for column in scope)
    keys = [f",\n  KEY `scope_{column.name}` (locus_tenant, `{column.name}`{{more}})" for column in scope]
    keys = keys or [",\n  KEY `locus_tenants` (locus_tenant{more})"]
    pieces = {
        **names,
        "scope": columns,
        "scope_indexes": fill("".join(keys), {"more": ""}),
        "mark_indexes": fill("".join(keys), {"more": ", locus_dims, locus_mark"}),
        "name_indexes": fill("".join(keys), {"more": ", track, name"}),
    }
    tables = tuple(Table(names[role], fill(definition, pieces) + _ENGINE) for role, definition in _DEFINITIONS.items())
    needed = [NeededColumn(names[role], name) for role, core in CORE.items() for name in core]
    for role in CORE:
        for column in scope:
            advice = (
                f"Add it: ALTER TABLE `{names[role]}` ADD `{column.name}` {column.type} NULL, "
                f"ADD KEY `scope_{column.name}` (locus_tenant, `{column.name}`)"
            )
            needed.append(NeededColumn(names[role], column.name, advice))
    scoped = ",".join(column.name if column.kind == "str" else f"{column.name}:{column.kind}" for column in scope)
    tables = (*tables, ledger.table(names["ledger"]))
    return Schema(
        "memu",
        LAYOUT_VERSION,
        tables,
        columns=tuple(needed),
        options=f" --scope {scoped}" if scope else "",
        optional_indexes=("locus_tenants",),
    )


def own_prefix(config: MySQLConfig) -> MySQLConfig:
    """Return the options with an empty table prefix, unless one was given, so that the tables have memU's names."""
    return config if "table_prefix" in config.model_fields_set else config.for_store(table_prefix="")
