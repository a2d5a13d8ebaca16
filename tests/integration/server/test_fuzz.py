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
    max_examples=5_000 if FULL else 250,
    derandomize=not FULL,
    phases=[*([Phase.reuse] if FULL else []), Phase.generate, *([Phase.shrink] if FULL else [])],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

#: Ids drawn often, so that what one request writes another one finds.
IDS = ("a", "b/c", "..", "ü%2F", "50%", "?#")

CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]
