"""Endpoints of a session's variables."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.calls import INT_LEAST, INT_MOST
from ...families.working.family import WORKING
from ...families.working.values import MISSING
from ..json_responses import answer
from ..problems import not_found
from ..routing import Endpoint
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
    ttl_seconds: Annotated[TTL, Field(description="Seconds until they expire; null: with the session.")] = None


class Variable(Answer):
    """A variable."""

    value: Json


class NewVariable(Body):
    """A variable to set."""

    value: Json
    ttl_seconds: Annotated[TTL, Field(description="Seconds until it expires; null: with the session.")] = None


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


def list_keys(request: Request) -> Response:
    """List the keys of a session's variables."""
    asked: VariablesQuery = request.state.query
    session = session_of(request)
    return answer({"keys": session.list_keys(asked.pattern)})


def get_variables(request: Request) -> Response:
    """Return all variables of a session."""
    session = session_of(request)
    return answer({"variables": session.get_all()})


def set_variables(request: Request) -> Response:
    """Set variables, all or none."""
    wanted: NewVariables = request.state.body
    session = session_of(request)
    session.set_many(wanted.variables, wanted.ttl_seconds)
    return answer({"ok": True})


def clear_variables(request: Request) -> Response:
    """Delete all variables of a session."""
    session = session_of(request)
    return answer({"deleted": session.clear()})


def get_variable(request: Request) -> Response:
    """Return the value of a variable."""
    session, key = session_of(request), request.path_params["key"]
    value = session.get(key, MISSING)
    if value is MISSING:
        raise not_found("variable")
    return answer({"value": value})


def set_variable(request: Request) -> Response:
    """Set a variable."""
    wanted: NewVariable = request.state.body
    session = session_of(request)
    session.set(request.path_params["key"], wanted.value, wanted.ttl_seconds)
    return answer({"ok": True})


def delete_variable(request: Request) -> Response:
    """Delete a variable."""
    session, key = session_of(request), request.path_params["key"]
    if not session.delete(key):
        raise not_found("variable")
    return answer({"deleted": True})


def get_ttl(request: Request) -> Response:
    """Return the remaining time to live of a variable."""
    session, key = session_of(request), request.path_params["key"]
    return answer({"expires_in_s": session.ttl(key)})


def increment(request: Request) -> Response:
    """Add to a whole number."""
    wanted: Increment = request.state.body
    session = session_of(request)
    return answer({"value": session.increment(request.path_params["key"], wanted.by)})


def compare_and_set(request: Request) -> Response:
    """Set a variable if it has the expected value."""
    wanted: CompareAndSet = request.state.body
    expected: Any = wanted.expected if "expected" in wanted.model_fields_set else MISSING
    session = session_of(request)
    return answer({"set": session.compare_and_set(request.path_params["key"], expected, wanted.value)})


ENDPOINTS = (
    Endpoint(
        "GET",
        f"{SESSION}/keys",
        list_keys,
        "read",
        "List keys of variables",
        query=VariablesQuery,
        answer=VariableKeys,
        family=WORKING,
        without_tables={"keys": []},
    ),
    Endpoint(
        "GET",
        f"{SESSION}/variables",
        get_variables,
        "read",
        "Get all variables",
        answer=Variables,
        family=WORKING,
        without_tables={"variables": {}},
    ),
    Endpoint(
        "PUT",
        f"{SESSION}/variables",
        set_variables,
        "write",
        "Set variables, all or none",
        query=BeginsQuery,
        body=NewVariables,
        answer=Done,
        family=WORKING,
    ),
    Endpoint(
        "DELETE",
        f"{SESSION}/variables",
        clear_variables,
        "write",
        "Delete all variables",
        answer=Deleted,
        family=WORKING,
        without_tables={"deleted": 0},
    ),
    Endpoint(
        "GET",
        _VARIABLE,
        get_variable,
        "read",
        "Get a variable",
        answer=Variable,
        family=WORKING,
        without_tables="variable",
    ),
    Endpoint(
        "PUT",
        _VARIABLE,
        set_variable,
        "write",
        "Set a variable",
        query=BeginsQuery,
        body=NewVariable,
        answer=Done,
        family=WORKING,
    ),
    Endpoint(
        "DELETE",
        _VARIABLE,
        delete_variable,
        "write",
        "Delete a variable",
        answer=Gone,
        family=WORKING,
        without_tables="variable",
    ),
    Endpoint(
        "GET",
        f"{_VARIABLE}/ttl",
        get_ttl,
        "read",
        "Get a variable's remaining time to live",
        answer=TimeToLive,
        family=WORKING,
        without_tables={"expires_in_s": None},
    ),
    Endpoint(
        "POST",
        f"{_VARIABLE}/increment",
        increment,
        "write",
        "Add to a whole number; a missing variable counts as 0",
        query=BeginsQuery,
        body=Increment,
        answer=Sum,
        family=WORKING,
    ),
    Endpoint(
        "POST",
        f"{_VARIABLE}/compare-and-set",
        compare_and_set,
        "write",
        "Set a variable if it has the expected value",
        query=BeginsQuery,
        body=CompareAndSet,
        answer=WasSet,
        family=WORKING,
    ),
)
