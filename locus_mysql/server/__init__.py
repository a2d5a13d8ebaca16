"""The HTTP service, and the inspector in the browser: `create_app` makes them one ASGI application."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import create_app as create_app
    from .limits import Limits as Limits
    from .tokens import Tokens as Tokens

#: Where what is public stands. Imported when it is asked for, as modules beside it need no Starlette.
_HOMES = {"Limits": ".limits", "Tokens": ".tokens", "create_app": ".application"}

__all__ = ["Limits", "Tokens", "create_app"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value
