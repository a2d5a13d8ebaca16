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
from .models import WITHOUT_NUL, Answer, Body, Deleted, Gone, Json, QueryParameters
from .sessions import SESSION, TTL, BeginsQuery, Done, session_of

#: Number of variables in a request.
VARIABLES_LIMIT = 1_000

_KEY = Annotated[str, Field(min_length=1, max_length=512, pattern=WITHOUT_NUL)]
_INT_64 = Annotated[int, Field(ge=INT_LEAST, le=INT_MOST)]

_VARIABLE = f"{SESSION}/variables/{{key}}"


class VariablesQuery(QueryParameters):
    """The query that selects variables."""

    pattern: Annotated[
        str,
        Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
    ] = "*"


class VariableKeys(Answer):
    """Keys of variables, in order by code point."""

    keys: list[str]


class Variables(Answer):
    """Variables, in the order of their keys by code point."""

    variables: dict[str, Json]


class NewVariables(Body):
    """Variables to set, all or none."""

    variables: Annotated[dict[_KEY, Json], Field(max_length=VARIABLES_LIMIT)]
    ttl_s: Annotated[TTL, Field(description="Seconds until they expire; null: with the session.")] = None


class Variable(Answer):
    """A variable."""

    value: Json


class NewVariable(Body):
    """A variable to set."""

    value: Json
    ttl_s: Annotated[TTL, Field(description="Seconds until it expires; null: with the session.")] = None


class Increment(Body):
    """The number to add."""

    by: _INT_64 = 1


class Sum(Answer):
    """The sum."""

    value: _INT_64


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


class WasSet(Answer):
    """Whether the variable had the expected value, and so was set."""

    set: bool


class TimeToLive(Answer):
    """The remaining time to live of a variable."""

    expires_in_s: Annotated[
        float | None, Field(description="null if the variable has no time to live of its own, or does not exist.")
    ]


ENDPOINTS = Endpoints(WORKING)


@ENDPOINTS.add("GET", f"{SESSION}/keys", query=VariablesQuery, answer=VariableKeys, without_tables={"keys": []})
def list_keys(request: Request) -> Response:
    """List keys of variables."""
    asked: VariablesQuery = request.state.query
    return answer({"keys": session_of(request).list_keys(asked.pattern)})


@ENDPOINTS.add("GET", f"{SESSION}/variables", answer=Variables, without_tables={"variables": {}})
def get_variables(request: Request) -> Response:
    """Get all variables."""
    return answer({"variables": session_of(request).get_all()})


@ENDPOINTS.add("PUT", f"{SESSION}/variables", query=BeginsQuery, body=NewVariables, answer=Done)
def set_variables(request: Request) -> Response:
    """Set variables, all or none."""
    wanted: NewVariables = request.state.body
    session_of(request).set_many(wanted.variables, wanted.ttl_s)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", f"{SESSION}/variables", answer=Deleted, without_tables={"deleted": 0})
def clear_variables(request: Request) -> Response:
    """Delete all variables."""
    return answer({"deleted": session_of(request).clear()})


@ENDPOINTS.add("GET", _VARIABLE, answer=Variable, without_tables="variable")
def get_variable(request: Request) -> Response:
    """Get a variable."""
    value = session_of(request).get(request.path_params["key"], MISSING)
    if value is MISSING:
        raise not_found("variable")
    return answer({"value": value})


@ENDPOINTS.add("PUT", _VARIABLE, query=BeginsQuery, body=NewVariable, answer=Done)
def set_variable(request: Request) -> Response:
    """Set a variable."""
    wanted: NewVariable = request.state.body
    session_of(request).set(request.path_params["key"], wanted.value, wanted.ttl_s)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", _VARIABLE, answer=Gone, without_tables="variable")
def delete_variable(request: Request) -> Response:
    """Delete a variable."""
    if not session_of(request).delete(request.path_params["key"]):
        raise not_found("variable")
    return answer({"deleted": True})


@ENDPOINTS.add("GET", f"{_VARIABLE}/ttl", answer=TimeToLive, without_tables={"expires_in_s": None})
def get_ttl(request: Request) -> Response:
    """Get a variable's remaining time to live."""
    return answer({"expires_in_s": session_of(request).ttl(request.path_params["key"])})


@ENDPOINTS.add("POST", f"{_VARIABLE}/increment", query=BeginsQuery, body=Increment, answer=Sum)
def increment(request: Request) -> Response:
    """Add to a whole number; a missing variable counts as 0."""
    wanted: Increment = request.state.body
    return answer({"value": session_of(request).increment(request.path_params["key"], wanted.by)})


@ENDPOINTS.add("POST", f"{_VARIABLE}/compare-and-set", query=BeginsQuery, body=CompareAndSet, answer=WasSet)
def compare_and_set(request: Request) -> Response:
    """Set a variable if it has the expected value."""
    wanted: CompareAndSet = request.state.body
    expected: Any = wanted.expected if "expected" in wanted.model_fields_set else MISSING
    return answer({"set": session_of(request).compare_and_set(request.path_params["key"], expected, wanted.value)})
