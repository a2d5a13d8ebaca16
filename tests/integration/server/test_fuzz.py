"""The whole service asked by chance: requests made of its own description, and requests that no description has.

Whatever is asked, no answer is a 5xx, each is as the description says, and what must be refused is.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

from locus_mysql.server.application import create_app

from ...thoroughness import FULL
from ..conftest import MakeConfig
from .running import running

#: A short run has the same examples every time, so that what lands does not depend on luck.
BY_CHANCE = settings(
    max_examples=1_500 if FULL else 250,
    derandomize=not FULL,
    phases=[*([Phase.reuse] if FULL else []), Phase.generate, *([Phase.shrink] if FULL else [])],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

#: Ids drawn often, so that what one request writes another one finds.
IDS = ("a", "b/c", "..", "ü%2F", "50%", "?#")

#: Longer ones are never seen by the application: 65,536 bytes is the most that uvicorn's parser holds of a head.
LONGEST_URL = 60_000

CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]


@pytest.fixture
def service(make_config: MakeConfig) -> Iterator[str]:
    """The base of the URLs of a service in the test's schema."""
    with running(create_app(make_config(driver="pymysql"), vacuum=True)) as url:
        yield url


@st.composite
def cases(draw: st.DrawFn, operations: list[Any], mode: GenerationMode) -> Any:
    """A request for one of the operations; its ids are often ones that others have, too."""
    case = draw(draw(st.sampled_from(operations)).as_strategy(generation_mode=mode))
    if mode is GenerationMode.POSITIVE:
        for name in case.path_parameters:
            if draw(st.booleans()):
                case.path_parameters[name] = draw(st.sampled_from(IDS))
    return case


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_as_the_description_says(service: str, mode: GenerationMode) -> None:
    described = requests.get(f"{service}/openapi.json", timeout=60).json()
    operations = [found.ok() for found in schemathesis.openapi.from_dict(described).get_all_operations()]
    checks = CHECKS if mode is GenerationMode.POSITIVE else [*CHECKS, openapi_checks.negative_data_rejection]
    seen = set()

    with requests.Session() as session:

        @BY_CHANCE
        @given(case=cases(operations, mode))
        def ask(case: Any) -> None:
            response = case.call(base_url=service, session=session)
            if len(response.request.url) > LONGEST_URL:  # which uvicorn refuses by itself
                assert response.status_code == 400
                return
            case.validate_response(response, checks=checks)
            seen.add((case.operation.label, response.status_code))

        ask()
    print(sorted(seen))
