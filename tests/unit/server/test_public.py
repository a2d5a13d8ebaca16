"""Public names of `locus_mysql.server`, and errors of invalid bodies."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel, ConfigDict

from locus_mysql import Database, server
from locus_mysql.errors import ConfigError
from locus_mysql.extras import install_command
from locus_mysql.server.application import create_app
from locus_mysql.server.bodies import parsed
from locus_mysql.server.problems import Problem


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = ""
    limit: int = 1
    filter: dict[str, int] = {}


def test_the_application_is_exported_by_the_package() -> None:
    assert server.create_app is create_app
    assert all(getattr(server, name) for name in server.__all__)
    with pytest.raises(AttributeError, match="no attribute 'create'"):
        _ = server.create


@pytest.mark.parametrize("library", server.LIBRARIES)
def test_without_the_extra_the_error_names_it_and_tokens_can_be_made(library: str) -> None:
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from locus_mysql.errors import SetupError\n"
        "from locus_mysql.server import Limits, Tokens, new_token\n"
        "Tokens(new_token('ann', 'acme', 'read').entry)\n"
        "try: from locus_mysql.server import create_app\n"
        "except SetupError as error: print(error)\n"
        "else: print('none is needed')\n"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    if library == "uvicorn":  # any server can serve the application
        assert output == "none is needed\n"
    else:
        assert output == f"The HTTP service needs {library}, which is not installed. Run {install_command('server')}.\n"


def test_a_tenant_beside_tokens_that_name_theirs_is_refused() -> None:
    known = server.Tokens(server.new_token("ann", "acme", "read").entry)
    with Database("mysql://root@localhost/nowhere", driver="pymysql") as database:
        with pytest.raises(ConfigError, match="Each token names its own tenant"):
            create_app(database, tokens=known, tenant="other")
        with pytest.raises(ConfigError, match="has 31 bytes"):
            create_app(database, tokens=known, cookie_key=b"x" * 31)


def test_the_error_of_an_unknown_field_lists_the_known_ones() -> None:
    with pytest.raises(Problem, match=r"The body, qery: .*Known: filter, limit, query\."):
        parsed(Asked, {"qery": "x"}, "The body")


@pytest.mark.parametrize("given", [[], "x", {"filter": []}])
def test_the_error_of_a_body_that_is_no_object_has_no_python_names(given: object) -> None:
    with pytest.raises(Problem, match=r"^The body(, filter)?: Input should be an object\.$"):
        parsed(Asked, given, "The body")


def test_a_driver_without_a_synchronous_side_is_refused() -> None:
    with pytest.raises(ConfigError, match="no synchronous side"):
        create_app("mysql://root@localhost/nowhere", driver="asyncmy")
