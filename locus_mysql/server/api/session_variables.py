"""Endpoints of a session's variables."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.calls import INT_LEAST, INT_MOST
from ...families.working.family import WORKING
from ...families.working.values import MISSING
from ..bodies import answer
from ..problems import not_found
from ..routing import Endpoints
from .models import WITHOUT_NUL, Body, Deleted, Gone, Json, Pattern, answer_with, gone
from .sessions import SESSION, TTL, BeginsTTL, Done, session_of

#: Number of variables in a request.
VARIABLES_LIMIT = 1_000

_KEY = Annotated[str, Field(min_length=1, max_length=512, pattern=WITHOUT_NUL)]
_INT_64 = Annotated[int, Field(ge=INT_LEAST, le=INT_MOST)]

_VARIABLE = f"{SESSION}/variables/{{key}}"


class NewVariables(Body):
    """Variables to set, all or none."""

    variables: Annotated[dict[_KEY, Json], Field(max_length=VARIABLES_LIMIT)]
    ttl_s: Annotated[TTL, Field(description="Seconds until they expire; null: with the session.")] = None


class NewVariable(Body):
    """A variable to set."""

    value: Json
    ttl_s: Annotated[TTL, Field(description="Seconds until it expires; null: with the session.")] = None


class Increment(Body):
    """The number to add."""

    by: _INT_64 = 1


class CompareAndSet(Body):
    """The expected value of a variable, and its new value."""

    expected: Annotated[
        Json,
        Field(
            description="The value that the variable must have. If left out, the variable must not exist. null is a "
            "value."
        ),
    ] = None
    value: Json


VariableKeys = answer_with("VariableKeys", "Keys of variables, in order by code point.", keys=list[str])
Variables = answer_with("Variables", "Variables, in the order of their keys by code point.", variables=dict[str, Json])
Variable = answer_with("Variable", "A variable.", value=Json)
Sum = answer_with("Sum", "The sum.", value=_INT_64)
WasSet = answer_with("WasSet", "Whether the variable had the expected value, and so was set.", set=bool)
TimeToLive = answer_with(
    "TimeToLive",
    "The remaining time to live of a variable.",
    expires_in_s=Annotated[
        float | None, Field(description="null if the variable has no time to live of its own, or does not exist.")
    ],
)

ENDPOINTS = Endpoints(WORKING)


@ENDPOINTS.add("GET", f"{SESSION}/keys", answer=VariableKeys, without_tables={"keys": []})
def list_keys(request: Request, session_id: str, pattern: Pattern = "*") -> Response:
    """List keys of variables."""
    return answer({"keys": session_of(request, session_id).list_keys(pattern)})


@ENDPOINTS.add("GET", f"{SESSION}/variables", answer=Variables, without_tables={"variables": {}})
def get_variables(request: Request, session_id: str) -> Response:
    """Get all variables."""
    return answer({"variables": session_of(request, session_id).get_all()})


@ENDPOINTS.add("PUT", f"{SESSION}/variables", answer=Done)
def set_variables(request: Request, session_id: str, body: NewVariables, session_ttl_s: BeginsTTL = None) -> Response:
    """Set variables, all or none."""
    session_of(request, session_id, session_ttl_s).set_many(body.variables, body.ttl_s)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", f"{SESSION}/variables", answer=Deleted, without_tables={"deleted": 0})
def clear_variables(request: Request, session_id: str) -> Response:
    """Delete all variables."""
    return answer({"deleted": session_of(request, session_id).clear()})


@ENDPOINTS.add("GET", _VARIABLE, answer=Variable, without_tables="variable")
def get_variable(request: Request, session_id: str, key: str) -> Response:
    """Get a variable."""
    value = session_of(request, session_id).get(key, MISSING)
    if value is MISSING:
        raise not_found("variable")
    return answer({"value": value})


@ENDPOINTS.add("PUT", _VARIABLE, answer=Done)
def set_variable(
    request: Request, session_id: str, key: str, body: NewVariable, session_ttl_s: BeginsTTL = None
) -> Response:
    """Set a variable."""
    session_of(request, session_id, session_ttl_s).set(key, body.value, body.ttl_s)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", _VARIABLE, answer=Gone, without_tables="variable")
def delete_variable(request: Request, session_id: str, key: str) -> Response:
    """Delete a variable."""
    return gone(session_of(request, session_id).delete(key), "variable")


@ENDPOINTS.add("GET", f"{_VARIABLE}/ttl", answer=TimeToLive, without_tables={"expires_in_s": None})
def get_ttl(request: Request, session_id: str, key: str) -> Response:
    """Get a variable's remaining time to live."""
    return answer({"expires_in_s": session_of(request, session_id).ttl(key)})


@ENDPOINTS.add("POST", f"{_VARIABLE}/increment", answer=Sum)
def increment(
    request: Request, session_id: str, key: str, body: Increment, session_ttl_s: BeginsTTL = None
) -> Response:
    """Add to a whole number; a missing variable counts as 0."""
    return answer({"value": session_of(request, session_id, session_ttl_s).increment(key, body.by)})


@ENDPOINTS.add("POST", f"{_VARIABLE}/compare-and-set", answer=WasSet)
def compare_and_set(
    request: Request, session_id: str, key: str, body: CompareAndSet, session_ttl_s: BeginsTTL = None
) -> Response:
    """Set a variable if it has the expected value."""
    expected: Any = body.expected if "expected" in body.model_fields_set else MISSING
    return answer({"set": session_of(request, session_id, session_ttl_s).compare_and_set(key, expected, body.value)})
