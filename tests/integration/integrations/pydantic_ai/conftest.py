"""Stores of Pydantic AI on every asynchronous driver."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pytest

from locus_mysql.integrations.pydantic_ai import PydanticConversationStore

from ..conftest import Opened

Make: TypeAlias = Callable[..., PydanticConversationStore]


@pytest.fixture
def make_store(opened: Opened, driver: str) -> Make:
    """Return ``make_store(**options)``."""
    return partial(opened, PydanticConversationStore, driver=driver)
