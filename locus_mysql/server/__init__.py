"""The HTTP service, and the inspector in the browser: `create_app` makes them one ASGI application.

The public names are imported when first used, as the command that makes a token needs no web server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import SetupError

if TYPE_CHECKING:
    from .application import create_app
    from .limits import Limits
    from .tokens import Tokens, new_token

#: What the extra ``server`` installs.
LIBRARIES = ("starlette", "uvicorn", "jinja2")

_HOMES = {"Limits": ".limits", "Tokens": ".tokens", "create_app": ".application", "new_token": ".tokens"}

__all__ = ["Limits", "Tokens", "create_app", "new_token"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(home, __name__), name)
    except ModuleNotFoundError as error:
        library = str(error.name).partition(".")[0]
        if library not in LIBRARIES:
            raise
        raise SetupError(
            f"The HTTP service needs {library}, which is not installed. Run pip install 'locus-mysql[server]'."
        ) from error
