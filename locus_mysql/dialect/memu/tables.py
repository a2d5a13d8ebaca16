"""The tables of memU's metadata store.

They have the columns of memU's own document about MySQL, with embeddings as bytes instead of JSON text, and those that
its later releases added. What begins with ``locus_`` is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..schema import NeededColumn, Schema, Table

#: Raised when a change of layout needs a migration.
LAYOUT_VERSION = 2

#: The tables by their roles, in the order in which they are made.
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "resources": "resources",
        "categories": "memory_categories",
        "items": "memory_items",
        "links": "category_items",
        "settled": "memu_settled",
    }
)

#: The columns of a record, but for those of its scope.
CORE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "resources": ("id", "created_at", "updated_at", "url", "modality", "local_path", "caption", "embedding"),
        "items": (
            *("id", "created_at", "updated_at", "resource_id", "memory_type", "summary", "happened_at", "extra"),
            "embedding",
        ),
        "categories": ("id", "created_at", "updated_at", "name", "description", "summary", "embedding"),
        "links": ("id", "created_at", "updated_at", "item_id", "category_id"),
    }
)

_ENGINE = ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin"

RESOURCES = """(
  id           VARCHAR(36)   NOT NULL,
  url          VARCHAR(2048) NOT NULL,
  modality     VARCHAR(64)   NOT NULL,
  local_path   VARCHAR(1024) NOT NULL,
  caption      LONGTEXT      NULL,
  embedding    MEDIUMBLOB    NULL,
  created_at   DATETIME(6)   NOT NULL,
  updated_at   DATETIME(6)   NOT NULL,
  locus_tenant VARCHAR(128)  NOT NULL,
  locus_checksum INT UNSIGNED NOT NULL,<scope>
  PRIMARY KEY (id)<indexes>
"""

# locus_checksum covers the tenant and all columns of `CORE`, not those of the scope, as user models may change. The
# server computes it, and each change of a row keeps what was wrong with it: so a change of one column makes no damage
# to another one pass for sound.

# locus_scope is a digest of tenant and scope: a unique key over columns that may be NULL would keep nothing apart.
CATEGORIES = """(
  id           VARCHAR(36)  NOT NULL,
  name         VARCHAR(255) NOT NULL,
  description  LONGTEXT     NOT NULL,
  embedding    MEDIUMBLOB   NULL,
  summary      LONGTEXT     NULL,
  created_at   DATETIME(6)  NOT NULL,
  updated_at   DATETIME(6)  NOT NULL,
  locus_tenant VARCHAR(128) NOT NULL,
  locus_checksum INT UNSIGNED NOT NULL,
  locus_scope  BINARY(16)   NOT NULL,<scope>
  PRIMARY KEY (id),
  UNIQUE KEY locus_once (locus_scope, name)<indexes>
"""

# locus_hash is the content hash of an item that is to be reinforced, not repeated. locus_mark is another number with
# each embedding, so that a process can tell which it has; locus_dims is its width: both stand in the index of a scope
# field, so that a search that has all embeddings reads no rows. ref_id may be of any length, so the index has its
# beginning.
ITEMS = """(
  id           VARCHAR(36)       NOT NULL,
  resource_id  VARCHAR(36)       NULL,
  memory_type  VARCHAR(32)       NOT NULL,
  summary      LONGTEXT          NOT NULL,
  embedding    MEDIUMBLOB        NULL,
  happened_at  DATETIME(6)       NULL,
  extra        JSON              NOT NULL,
  created_at   DATETIME(6)       NOT NULL,
  updated_at   DATETIME(6)       NOT NULL,
  locus_tenant VARCHAR(128)      NOT NULL,
  locus_checksum INT UNSIGNED NOT NULL,
  locus_scope  BINARY(16)        NOT NULL,
  locus_hash   CHAR(16)          NULL,
  locus_dims   SMALLINT UNSIGNED NULL,
  locus_mark   BIGINT UNSIGNED   NULL,
  locus_ref    VARCHAR(128)      AS (LEFT(JSON_UNQUOTE(JSON_EXTRACT(extra, '$.ref_id')), 128)) VIRTUAL,<scope>
  PRIMARY KEY (id),
  UNIQUE KEY locus_once (locus_scope, locus_hash),
  KEY locus_refs (locus_ref, locus_tenant),
  KEY resource_id (resource_id)<marks>,
  FOREIGN KEY (resource_id) REFERENCES `{resources}` (id) ON DELETE CASCADE
"""

LINKS = """(
  id           VARCHAR(36)  NOT NULL,
  item_id      VARCHAR(36)  NOT NULL,
  category_id  VARCHAR(36)  NOT NULL,
  created_at   DATETIME(6)  NOT NULL,
  updated_at   DATETIME(6)  NOT NULL,
  locus_tenant VARCHAR(128) NOT NULL,
  locus_checksum INT UNSIGNED NULL,<scope>
  PRIMARY KEY (id),
  UNIQUE KEY idx_category_items_unique (item_id, category_id),
  KEY category_id (category_id)<indexes>,
  FOREIGN KEY (item_id) REFERENCES `{items}` (id) ON DELETE CASCADE,
  FOREIGN KEY (category_id) REFERENCES `{categories}` (id) ON DELETE CASCADE
"""

# Every write leaves its token, in its own transaction: so one whose answer was lost is recognised when it is repeated,
# and a late duplicate of its packet fails by the primary key.
SETTLED = """(
  token      BINARY(16)  NOT NULL,
  settled_at DATETIME(6) NOT NULL,
  PRIMARY KEY (token),
  KEY age (settled_at)
"""

_DEFINITIONS = {
    "resources": RESOURCES,
    "categories": CATEGORIES,
    "items": ITEMS,
    "links": LINKS,
    "settled": SETTLED,
}


_KINDS = {"BIGINT": "int", "TINYINT": "bool", "CHAR(36)": "uuid", "DATETIME(6)": "datetime"}


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column for a field of the user model.

    Args:
        name: Unquoted.
        type: Its SQL type.
    """

    name: str
    type: str

    @property
    def kind(self) -> str:
        """What it holds, as the command line says it."""
        return kind_of(self.type)


def kind_of(type: str) -> str:
    """What a column of a type holds, as the command line says it."""
    return _KINDS.get(type.upper(), "str")


def table_names(table_prefix: str) -> dict[str, str]:
    """The unquoted names of the tables by their roles."""
    return {role: table_prefix + name for role, name in NAMES.items()}


def memu_schema(table_prefix: str, scope: Sequence[ScopeColumn]) -> Schema:
    """The tables of memU's metadata store.

    Args:
        table_prefix: Put before their names.
        scope: The columns of the user model's fields; each is indexed.
    """
    names = table_names(table_prefix)
    columns = "".join(f"\n  `{column.name}` {column.type} NULL," for column in scope)
    keys = [f",\n  KEY `scope_{column.name}` (locus_tenant, `{column.name}`<more>)" for column in scope]
    keys = keys or [",\n  KEY `locus_tenants` (locus_tenant<more>)"]
    indexes = "".join(keys).replace("<more>", "")
    marks = "".join(keys).replace("<more>", ", locus_dims, locus_mark")
    tables = tuple(
        Table(
            names[role],
            definition.replace("<scope>", columns)
            .replace("<indexes>", indexes)
            .replace("<marks>", marks)
            .format_map(names)
            + _ENGINE,
        )
        for role, definition in _DEFINITIONS.items()
    )
    needed = [NeededColumn(names[role], name) for role, core in CORE.items() for name in core]
    for role in CORE:
        for column in scope:
            advice = (
                f"Add it: ALTER TABLE `{names[role]}` ADD `{column.name}` {column.type} NULL, "
                f"ADD KEY `scope_{column.name}` (locus_tenant, `{column.name}`)"
            )
            needed.append(NeededColumn(names[role], column.name, advice))
    scoped = ",".join(column.name if column.kind == "str" else f"{column.name}:{column.kind}" for column in scope)
    return Schema("memu", LAYOUT_VERSION, tables, columns=tuple(needed), options=f" --scope {scoped}" if scope else "")
