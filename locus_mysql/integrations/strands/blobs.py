"""The bytes under a key as a state of a checkpoint, and back. No I/O.

JSON is stored as a value, so that the delta coding of checkpoints finds what a conversation adds and the inspector
shows it; but only if it can be written again as exactly the same bytes. Everything else is stored as a text, or in
base 64.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from ...errors import CorruptCheckpoint, InvalidInput
from ...families.checkpoints.coding.codec import EncodedState, encode
from ...runtime.exact_json import check_json_object

#: The ways of writing JSON that can be repeated: those of Python's encoder that Strands uses, the usual one first.
STYLES: Mapping[str, Mapping[str, Any]] = {
    "spaced": {"ensure_ascii": False},
    "compact": {"ensure_ascii": False, "separators": (",", ":")},
    "escaped": {},
    "indented": {"ensure_ascii": False, "indent": 2},
}

#: The fields of a state: the style of JSON, its value, the messages that were taken out of the value; or other content.
STYLE, VALUE, MESSAGES, TEXT, BASE64 = "json", "value", "messages", "text", "base64"


def state_of(data: bytes) -> EncodedState:
    """Return bytes as an encoded state."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return encode({BASE64: base64.b64encode(data).decode()})
    return _json_state(text) or encode({TEXT: text})


def bytes_of(state: Mapping[str, Any], key: str) -> bytes:
    """Return the bytes that a state was made of.

    Raises:
        CorruptCheckpoint: The state has another form: another program wrote it.
    """
    try:
        if BASE64 in state:
            return base64.b64decode(state[BASE64], validate=True)
        if TEXT in state:
            return str(state[TEXT]).encode()
        value = state[VALUE]
        if MESSAGES in state:
            value["data"]["messages"] = state[MESSAGES]
        return json.dumps(value, **STYLES[state[STYLE]]).encode()
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise CorruptCheckpoint(f"The state under the key {key!r} was not written by StrandsStorage.") from None


def _json_state(text: str) -> EncodedState | None:
    """Return JSON as a state; None for what is not JSON, or could not be written again as the same text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value = json.loads(text, parse_constant=_refuse)
        style = next((name for name, options in STYLES.items() if json.dumps(value, **options) == text), None)
        if style is None:
            return None
        state = {STYLE: style, **_divided(value)}
        check_json_object(state, "The state")  # as an import does
        return encode(state)
    except (ValueError, RecursionError, InvalidInput):
        return None


def _divided(value: Any) -> dict[str, Any]:
    """Return the value, and apart from it the messages of a snapshot, which are delta-coded as a list of their own."""
    data = value.get("data") if isinstance(value, dict) else None
    if not (isinstance(data, dict) and isinstance(messages := data.get("messages"), list)):
        return {VALUE: value}
    return {MESSAGES: messages, VALUE: {**value, "data": {**data, "messages": None}}}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
