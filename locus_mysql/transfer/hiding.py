"""Hides passwords in messages about the sides of a copy. No I/O."""

from __future__ import annotations

import re
from urllib.parse import unquote


def hide(text: str, secrets: set[str]) -> str:
    """Return a text without passwords."""
    text = re.sub(r"//\S*@", "//***@", text)  # a password that is not percent-encoded may hold slashes
    for secret in sorted((one for one in secrets if len(one) > 3), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def secrets_in(name: str) -> list[str]:
    """Return the passwords in a name, percent-encoded and decoded."""
    found = re.search(r"//[^/:]*:(.*)@", name)
    return [] if found is None else [found[1], unquote(found[1])]
