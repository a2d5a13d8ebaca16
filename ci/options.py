"""Generates code and documents from the options in `locus_mysql.options`: types of keywords, and tables of options.

    python -m ci.options     writes locus_mysql/keywords.py and the tables of docs/configuration.md

A test compares both with the options.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from locus_mysql.config import ConnectionOptions, MySQLConfig, PasswordFunction, StoreOptions
from locus_mysql.encryption import Encryption
from locus_mysql.options import STORES, classes_that_use

_ROOT = Path(__file__).resolve().parents[1]
KEYWORDS = _ROOT / "locus_mysql" / "keywords.py"
PAGE = _ROOT / "docs" / "configuration.md"

_DSN = "`mysql://user:password@host:port/database?option=value`"

#: Types that the configuration also accepts in place of a field's type.
_ALSO = {
    SecretStr: "str | SecretStr",
    Encryption: "Encryption",
    PasswordFunction: "Callable[[], str | SecretStr | Awaitable[str | SecretStr]]",
    Path: "str | Path",
    tuple[str, ...]: "tuple[str, ...] | list[str]",
}


def keywords_module() -> str:
    """Return the text of `locus_mysql.keywords`."""
    return f'''"""The options of `config` as keywords, for type checkers. Written by ``python -m ci.options``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, TypedDict

from pydantic import SecretStr

from .encryption import Encryption


class ConnectionKeywords(TypedDict, total=False):
    """The options of a connection; and the DSN, which may hold others as well."""

    dsn: str | SecretStr
{_fields(ConnectionOptions)}


class StoreKeywords(TypedDict, total=False):
    """The options of a store."""

{_fields(StoreOptions)}


class Keywords(ConnectionKeywords, StoreKeywords, total=False):
    """All options."""
'''


def page() -> str:
    """Return the text of the page about the configuration, with current tables."""
    text = PAGE.read_text(encoding="utf-8")
    for table in (_table(advanced=False), _table(advanced=True), _users()):
        heading, _, _ = table.partition("\n")
        before, _, after = text.partition(heading)
        text = before + table + re.sub(r"\A\n(\|.*\n)*", "", after)
    return text


def _fields(model: type[BaseModel]) -> str:
    return "\n".join(f"    {name}: {_field_type(field)}" for name, field in model.model_fields.items())


def _field_type(field: FieldInfo) -> str:
    """Return a field's type as text, with the values that an editor suggests."""
    extra: Any = field.json_schema_extra
    suggested = [f"Literal[{', '.join(map(_literal, extra['suggested']))}]"] if extra["suggested"] else []
    return " | ".join([*suggested, _type(field.annotation)])


def _type(annotation: Any) -> str:
    """Return an annotation as text, with all types that the configuration accepts, and without limits."""
    if annotation in _ALSO:
        return _ALSO[annotation]
    if annotation is NoneType:
        return "None"
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type(get_args(annotation)[0])
    if origin in {Union, UnionType}:
        return " | ".join(map(_type, get_args(annotation)))
    if origin is Literal:
        return f"Literal[{', '.join(map(_literal, get_args(annotation)))}]"
    return str(annotation.__name__)


def _table(*, advanced: bool) -> str:
    heading = "advanced option" if advanced else "option"
    lines = [f"| {heading} | default | meaning |", "| --- | --- | --- |"]
    if not advanced:
        lines.append(f"| `dsn` | `LOCUS_MYSQL_DSN` | {_DSN} |")
    for name, field in MySQLConfig.model_fields.items():
        extra: Any = field.json_schema_extra
        if extra["advanced"] is advanced:
            lines.append(f"| `{name}` | `{_literal(field.default)}` | {field.description} |")
    return "\n".join(lines) + "\n"


def _users() -> str:
    """Return the table of the options that not all classes use."""
    lines = ["| option of some classes | has an effect on |", "| --- | --- |"]
    for name in MySQLConfig.model_fields:
        if (used := classes_that_use(name)) != STORES:
            lines.append(f"| `{name}` | {', '.join(f'`{one}`' for one in sorted(used))} |")
    return "\n".join(lines) + "\n"


def _literal(value: Any) -> str:
    text = repr(value.get_secret_value() if isinstance(value, SecretStr) else value)
    return f'"{text[1:-1]}"' if text.startswith("'") else text


def main() -> None:
    """Write both files."""
    KEYWORDS.write_text(keywords_module(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
