"""``GET /openapi.json``: the description of the API, generated from the endpoints and their models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from ... import __version__
from ..bodies import answer_text
from ..limits import Limits
from ..problems import CODES
from ..routing import Endpoint
from .models import WITHOUT_NUL

#: Descriptions of path parameters.
_IN_PATHS: dict[str, dict[str, Any]] = {
    "thread_id": {"description": "A thread; compared by code point.", "maxLength": 512},
    "checkpoint_id": {"description": "A checkpoint.", "maxLength": 128},
    "session_id": {"description": "A session; compared by code point.", "maxLength": 512},
    "key": {"description": "A variable's key.", "maxLength": 512},
}

DESCRIPTION = """\
The memory of AI agents in MySQL: threads of checkpoints, long-term memory, and working memory.

**Access.** A token, as bearer token or as the password of Basic authentication, belongs to one tenant, and allows
reading, or reading and writing. No token gives access to another tenant's data.

**Ids in paths** are percent-encoded, a slash as `%2F`. The ids `.` and `..` cannot be used in paths, because clients
remove them.

**Repeating.** A request that failed with 408, 429 or 503, or got no response, may be repeated after the seconds in
Retry-After. Repeating a read, save, delete or set has the effect of one request. Repeating these adds again: notes,
checkpoints of sessions, increments, versions of items. Repeating a copy that succeeded is refused.

**Request ids.** Each response has one in `X-Request-Id`: that of the request, if it has 1 to 64 letters, digits, `.`,
`_` or `-`, else a random one. The service's log contains it too.

**Numbers.** `NaN` and infinities are refused. A state that was saved by Python, not over HTTP, may hold some; they are
returned as in JavaScript.

**Limits.** {limits}

**Errors** are JSON: `{{"error": {{"code", "message", "request_id"}}}}`. Codes are stable; messages are for people.

| code | status | |
| --- | --- | --- |
{codes}
"""

_ERROR = {
    "type": "object",
    "description": "What went wrong.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {
                    "type": "string",
                    "enum": sorted(CODES),
                    "description": "A stable code of the error, for programs.",
                },
                "message": {"type": "string", "description": "The error and its remedy, for people."},
                "request_id": {"type": "string", "description": "The request id, under which the log has the request."},
            },
        }
    },
}


def openapi_endpoint(endpoints: Sequence[Endpoint], limits: Limits, *, secured: bool) -> Endpoint:
    """Return the endpoint that describes the others and itself.

    Args:
        endpoints: The other endpoints.
        limits: What is refused.
        secured: Whether a token is needed.
    """
    made: list[bytes] = []

    async def describe(_request: Request) -> Response:
        if not made:  # imported on first use, so that the service starts faster
            # In a thread, as it takes a quarter of a second; other threads run in between.
            described = await asyncio.to_thread(description, [*endpoints, this], limits, secured=secured)
            made.append(to_json(described))
        return answer_text(made[0])

    this = Endpoint(
        "GET",
        "/openapi.json",
        describe,
        "open",
        "Get this description of the API, as OpenAPI 3.1",
        answer=dict[str, Any],
    )
    return this


def description(endpoints: Sequence[Endpoint], limits: Limits, *, secured: bool) -> dict[str, Any]:
    """Return the description of endpoints as an OpenAPI 3.1 document.

    Args:
        endpoints: The endpoints.
        limits: What is refused.
        secured: Whether a token is needed.
    """
    references, schemas = _schemas_of(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = _operation(endpoint, references, secured)
    codes = "\n".join(f"| `{code}` | {status} | {text} |" for code, (status, text) in CODES.items())
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "locus-mysql",
            "version": __version__,
            "description": DESCRIPTION.format(limits=_limits_text(limits), codes=codes),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "."}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": _ERROR},
            "responses": {
                "Refused": _failure("The request is refused; nothing was changed."),
                "Failed": _failure("The request failed."),
            },
        },
    }
    if secured:
        document["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "basic", "description": "The password is the token; any user name."},
        }
    return document


_TAGS = {
    "service": "The service itself.",
    "threads": "Conversations of agents, as checkpoints that can be loaded again.",
    "memories": "Long-term memory: items under keys in namespaces.",
    "sessions": "Working memory: variables, the state of a task, notes, checkpoints.",
}


def _tag_of(endpoint: Endpoint) -> str:
    first = endpoint.template.split("/")[1]
    if first in _TAGS:
        return first
    return "service" if first in {"health", "openapi.json"} else "threads"


def _operation(endpoint: Endpoint, references: dict[tuple[Any, str], dict[str, Any]], secured: bool) -> dict[str, Any]:
    answered = references.get((endpoint.answer, "serialization"), {"type": "object"})
    operation: dict[str, Any] = {
        "operationId": _id_of(endpoint),
        "summary": endpoint.summary,
        "tags": [_tag_of(endpoint)],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": {
            "200": {
                "description": "The request was carried out.",
                "headers": _REQUEST_ID,
                "content": {"application/json": {"schema": answered}},
            },
            "4XX": {"$ref": "#/components/responses/Refused"},
            "5XX": {"$ref": "#/components/responses/Failed"},
        },
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": references[endpoint.body, "validation"]}},
        }
    if endpoint.access == "open":
        operation["security"] = []
    elif secured:
        operation["security"] = [{"bearer": []}, {"basic": []}]
        operation["description"] = f"Needs a token that may {endpoint.access}."
    return operation


def _id_of(endpoint: Endpoint) -> str:
    """Return the operation id for generated clients: the method and the words of the path."""
    words = [re.sub(r"\W", "_", segment.strip("{}")) for segment in endpoint.template.split("/")[1:]]
    return "_".join([endpoint.method.lower(), *words])


def _path_parameters(endpoint: Endpoint) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", endpoint.template):
        about = _IN_PATHS[name]
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": about["description"],
            "schema": {"type": "string", "minLength": 1, "maxLength": about["maxLength"], "pattern": WITHOUT_NUL},
        }


def _query_parameters(endpoint: Endpoint) -> Iterable[dict[str, Any]]:
    if endpoint.query is None:
        return
    model = endpoint.query.model_json_schema()
    for name, schema in model.get("properties", {}).items():
        described = {key: value for key, value in _not_null(schema).items() if key not in {"title", "default"}}
        about = described.pop("description", "")
        default = schema.get("default")
        yield {
            "name": name,
            "in": "query",
            "required": name in model.get("required", ()),
            "description": about,
            "schema": {**described, **({} if default is None else {"default": default})},
            **({"style": "form", "explode": True} if described.get("type") == "array" else {}),
        }


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without null, which a query cannot express: an optional field can be left out."""
    others = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(others) != 1:
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **others[0]}


def _schemas_of(
    endpoints: Iterable[Endpoint],
) -> tuple[dict[tuple[Any, str], dict[str, Any]], dict[str, Any]]:
    """Return the reference to each model's schema, by model and use, and the schemas by name."""
    wanted: dict[tuple[type[BaseModel], Literal["validation", "serialization"]], None] = {}
    for endpoint in endpoints:
        if endpoint.body is not None:
            wanted[endpoint.body, "validation"] = None
        if isinstance(endpoint.answer, type) and issubclass(endpoint.answer, BaseModel):
            wanted[endpoint.answer, "serialization"] = None
    references, schemas = models_json_schema(list(wanted), ref_template="#/components/schemas/{model}")
    return {key: dict(value) for key, value in references.items()}, schemas.get("$defs", {})


#: Headers of every answer.
_REQUEST_ID = {
    "X-Request-Id": {
        "description": "The request id, under which the log has the request.",
        "schema": {"type": "string"},
    },
}


def _failure(text: str) -> dict[str, Any]:
    seconds = {"description": "Seconds after which the request may be repeated.", "schema": {"type": "integer"}}
    return {
        "description": text,
        "headers": {**_REQUEST_ID, "Retry-After": seconds},
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def _limits_text(limits: Limits) -> str:
    return (
        f"A body has at most {limits.body_bytes:,} bytes and arrives within {limits.body_s:g} s; JSON is nested at "
        f"most 200 deep. At most {limits.requests} requests are carried out at once, half of them of one "
        f"tenant, each for at most {limits.request_s:g} s."
    )
