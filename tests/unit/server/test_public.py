"""What `locus_mysql.server` has, and what it says of a field that nobody knows."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

from locus_mysql import server
from locus_mysql.server.application import create_app
from locus_mysql.server.bodies import parsed
from locus_mysql.server.problems import Problem


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = ""
    limit: int = 1
    filter: dict[str, int] = {}


def test_the_application_is_had_from_the_package() -> None:
    assert server.create_app is create_app
    assert all(getattr(server, name) for name in server.__all__)
    with pytest.raises(AttributeError, match="no attribute 'create'"):
        _ = server.create


def test_an_unknown_field_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(Problem, match=r"The body, qery: .*Known are: filter, limit, query\."):
        parsed(Asked, {"qery": "x"}, "The body")


@pytest.mark.parametrize("given", [[], "x", {"filter": []}])
def test_what_is_no_object_is_answered_without_names_of_python(given: object) -> None:
    with pytest.raises(Problem, match=r"^The body(, filter)?: Input should be an object\.$"):
        parsed(Asked, given, "The body")
