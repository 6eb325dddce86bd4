"""The plain forms in which models write a tool call as JSON, and the one form they are all brought into."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from packetgate.models.decoding.values import once_decoded, whole_object

CALL_KEYS = {
    "name": ("name", "tool", "tool_name", "selected_tool", "function_name", "function"),
    "arguments": ("arguments", "params", "parameters", "args", "input"),
}
"""What a call holds, and the keys that models put it under."""

_WRAPPERS = ("function", "functionCall", "function_call")
"""Keys under which a call may stand as a whole: of OpenAI's and Gemini's wire."""
_LANGCHAIN = {"action": "name", "action_input": "arguments"}
"""Keys that hold a call only together: in our own form, `action` is something else."""

_BESIDE = frozenset(
    {
        *CALL_KEYS["name"],
        *("id", "type", "index", "call_id", "tool_call_id", "functionCall", "function_call"),
        *("action", "question", "tools", "alternatives", "reasoning", "confidence"),
    }
)
"""What may stand in a call without arguments, or in an answer in our own form."""


@dataclass(frozen=True)
class NativeCall:
    """A tool call as a model wrote it: nobody has checked yet that there is such a tool."""

    name: str
    arguments: dict[str, Any]
    written: dict[str, str] = field(default_factory=dict, compare=False)
    """The text of arguments that were written without a type, where it was read as more than a text."""

    def as_entry(self) -> dict[str, Any]:
        """Return the call as an object of the plain form."""
        return {name: value for name, value in asdict(self).items() if value or name != "written"}


def call_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `name` and the `arguments` that an object gives under any of their keys; one not given is left out.

    Arguments written as a string are decoded; null and the empty string stand for none.

    Raises:
        ValueError: the object gives one of them twice, and differently; the string holds no JSON object; there are no
            arguments, but other things that may be them; or it defines a tool.
    """
    places = _places(entry)
    if any(map(_is_definition, places)):
        raise ValueError("it defines a tool, and calls none")
    fields: dict[str, Any] = {}
    for part, keys in CALL_KEYS.items():
        given = [
            (key, place[key])
            for place in places
            for key in keys
            if key in place and not (key == "function" and len(places) > 1)
        ]
        if any(value != given[0][1] for _, value in given):
            raise ValueError(f"one call gives its {part} twice, and differently: {', '.join(key for key, _ in given)}")
        if given:
            fields[part] = given[0][1]
    if "arguments" in fields:
        fields["arguments"] = _decoded(fields["arguments"])
    elif isinstance(fields.get("name"), str):
        unread = [key for place in places for key in place if key not in _BESIDE]
        if unread:
            raise ValueError(f"a tool call has no arguments, but {unread[0][:60]!r}")
    return fields


def read_call(entry: object) -> NativeCall:
    """Read a call in any of its plain forms.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("a tool call must be a JSON object")  # noqa: TRY004  one error for all that is no call
    fields = call_fields(entry)
    name, arguments = fields.get("name"), fields.get("arguments", {})
    if not isinstance(name, str) or not name.strip():
        raise ValueError("a tool call names no tool")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {name[:60]!r} are no JSON object")  # noqa: TRY004
    return NativeCall(name.strip(), arguments)


def says_call(entry: object) -> bool:
    """Whether a value reads like a call although nothing around it says that it is one."""
    if not isinstance(entry, Mapping):
        return False
    places = _places(entry)
    said = {key for place in places for key in place}
    return all(said & {*keys} for keys in CALL_KEYS.values()) and not any(map(_is_definition, places))


def names_call(entry: Mapping[str, Any]) -> bool:
    """Whether a value is a call in one of the forms that are nothing else."""
    return "action_input" in entry or (len(entry) == 1 and not entry.keys().isdisjoint(_WRAPPERS))


def _places(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "action_input" in entry:
        entry = {_LANGCHAIN.get(key, key): value for key, value in entry.items()}
    return [entry, *(entry[key] for key in _WRAPPERS if isinstance(entry.get(key), Mapping))]


def _is_definition(place: Mapping[str, Any]) -> bool:
    schema = place.get("parameters")
    if not isinstance(schema, Mapping):
        return False
    return schema.get("type") == "object" and isinstance(schema.get("properties"), Mapping)


def _decoded(arguments: Any) -> Any:
    if isinstance(arguments, str) and arguments.strip():
        return whole_object(once_decoded(arguments))
    return {} if arguments is None or isinstance(arguments, str) else arguments
