"""The HTTP service and the inspector in the browser, as one ASGI application: `create_app`.

Imports `inspection` and the layers below; only this layer imports Starlette and Uvicorn. Public names are imported
when first used, as the command that creates a token needs no web server. Begin with `application`, then `requests`,
`routing` and `dispatching`; `api` has the JSON endpoints, `pages` the inspector.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import SetupError
from ..extras import install_command

if TYPE_CHECKING:
    from .application import create_app
    from .limits import Limits
    from .tokens import Tokens, new_token

#: Modules that the extra ``server`` installs.
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
            f"The HTTP service needs {library}, which is not installed. Run {install_command('server')}."
        ) from error
