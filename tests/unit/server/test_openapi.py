"""The description of the API is valid OpenAPI 3.1 and lists every endpoint and error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import schemathesis

from locus_mysql import Database
from locus_mysql.server import application
from locus_mysql.server.api.openapi import description
from locus_mysql.server.limits import Limits
from locus_mysql.server.problems import CODES

with Database("mysql://nobody@localhost/nowhere", driver="pymysql") as database:
    #: All but the description itself, which is the last.
    ENDPOINTS = application.create_app(database, vacuum=True).state.groups[0].endpoints[:-1]

SERVER = Path(application.__file__).parent


def described(*, secured: bool = True) -> dict[str, Any]:
    """The whole description, in the form that clients receive."""
    document = json.loads(json.dumps(description(ENDPOINTS, Limits(), secured=secured)))
    assert isinstance(document, dict)
    return document


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_the_description_is_valid_openapi() -> None:
    for secured in (True, False):
        schemathesis.openapi.from_dict(described(secured=secured)).validate()


def test_the_description_has_every_endpoint_once_with_a_unique_id() -> None:
    found = list(operations(described()))
    assert {(method, path) for method, path, _ in found} == {(one.method, one.template) for one in ENDPOINTS}
    assert len(found) == len(ENDPOINTS)
    assert len({operation["operationId"] for _, _, operation in found}) == len(found)


def test_parameters_are_described_as_they_are_checked() -> None:
    schemas = {
        (template, one["name"]): one["schema"]
        for _, template, operation in operations(described())
        for one in operation.get("parameters", ())
    }
    assert schemas["/threads/{thread_id}/checkpoints", "limit"]["minimum"] == 0
    assert "transcripts" in schemas["/threads", "family"]["enum"]


def test_every_reference_resolves() -> None:
    document = described()
    for reference in references(document):
        part: Any = document
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]


def test_models_have_names_of_their_own_by_which_clients_are_generated() -> None:
    """Generators name classes by title, and omit a model with the title of another one."""
    schemas = described()["components"]["schemas"]
    assert [name for name in schemas if not re.fullmatch(r"[A-Za-z]+", name)] == []
    assert {name: schema.get("title", name) for name, schema in schemas.items()} == {name: name for name in schemas}


def test_every_name_in_a_path_is_described_and_bounded() -> None:
    for _, path, operation in operations(described()):
        named = {one["name"]: one for one in operation["parameters"] if one["in"] == "path"}
        assert named.keys() == set(re.findall(r"{(\w+)}", path))
        assert all(one["required"] and one["schema"]["maxLength"] for one in named.values())


def test_every_answer_has_a_model_and_every_operation_a_summary() -> None:
    for method, path, operation in operations(described()):
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert "$ref" in schema, f"{method} {path}"
        assert operation["summary"]


def test_operations_that_need_a_token_declare_it() -> None:
    for _, path, operation in operations(described()):
        assert operation["security"] == ([] if path == "/health" else [{"bearer": []}, {"basic": []}])
    unsecured = described(secured=False)
    assert "securitySchemes" not in unsecured["components"]
    assert all(not operation.get("security") for _, _, operation in operations(unsecured))


def test_every_error_of_the_service_is_documented() -> None:
    source = "\n".join(path.read_text() for path in SERVER.rglob("*.py") if "pages" not in path.parts)
    raised = {
        *re.findall(r'(?:Problem|try_later)\(\s*"(\w+)"', source),
        *re.findall(r'^    (?:\d{3}: \(|\(\w+, )"(\w+)"', source, re.MULTILINE),
    }
    assert raised == CODES.keys()
    assert set(CODES) == set(
        described()["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"]
    )
    for code in CODES:
        assert f"`{code}`" in described()["info"]["description"]


async def test_the_service_describes_itself() -> None:
    async with Database("mysql://root@localhost/nowhere", driver="pymysql") as database:
        app = application.create_app(database)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            answer = await client.get("/openapi.json")
    assert answer.headers["Content-Type"] == "application/json"
    paths = answer.json()["paths"]
    assert "/openapi.json" in paths
    assert "/vacuum" not in paths
    assert set(paths) - {"/openapi.json"} == {one.template for one in ENDPOINTS} - {"/vacuum"}
