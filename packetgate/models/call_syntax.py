"""The syntax in which a model writes tool calls, derived from its chat template."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_NAMES = ("first_tool_name", "second_tool_name")
_ARGUMENTS = ({"one_key": "one value", "other_key": 2}, {"third_key": "third value"})
_EXAMPLE_REQUEST: dict[str, Any] = {"role": "user", "content": "?"}


@dataclass(frozen=True)
class ReadCall:
    """A parsed call, with the character ranges of its name and arguments in the text."""

    name: str
    name_at: tuple[int, int]
    arguments: dict[str, Any]
    arguments_at: tuple[int, int]


@dataclass(frozen=True)
class CallSyntax:
    """The text around the names and arguments of calls; arguments are JSON objects."""

    head: str
    """Before the first name."""
    middle: str
    """Between a name and its arguments."""
    glue: str
    """Between a call's arguments and the next name."""
    tail: str
    """After the last call."""
    item_separator: str = ", "
    key_separator: str = ": "

    def write(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
        """Return these calls as the model writes them."""
        separators = (self.item_separator, self.key_separator)
        written = [
            name + self.middle + json.dumps(arguments, ensure_ascii=False, separators=separators)
            for name, arguments in calls
        ]
        return self.head + self.glue.join(written) + self.tail

    def read(self, text: str, head: str | None = None) -> list[ReadCall]:
        """Return the calls at the beginning of a text.

        Args:
            head: replaces `self.head`, if the head has control tokens, which leave no text.
        """
        found: list[ReadCall] = []
        before = self.head if head is None else head
        at = 0
        while text.startswith(before, at):
            begin = at + len(before)
            end = text.find(self.middle, begin)
            if end < 0:
                break
            try:
                arguments, at = json.JSONDecoder().raw_decode(text, end + len(self.middle))
            except ValueError:
                break
            if not isinstance(arguments, dict):
                break
            found.append(ReadCall(text[begin:end], (begin, end), arguments, (end + len(self.middle), at)))
            before = self.glue
        return found


DEFAULT_SYNTAX = CallSyntax(
    '<tool_call>\n{"name": "', '", "arguments": ', '}\n</tool_call>\n<tool_call>\n{"name": "', "}\n</tool_call>"
)
"""The most common call syntax, for templates that have none."""


def syntax_from_template(template: Callable[[Sequence[dict[str, Any]]], str], ends: Sequence[str]) -> CallSyntax | None:
    """Return the call syntax of a chat template; None if its calls are not a name followed by JSON.

    Args:
        template: renders a conversation up to where the model continues.
        ends: texts that end a turn.
    """
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(zip(_NAMES, _ARGUMENTS, strict=True))
    ]
    before = template([_EXAMPLE_REQUEST])
    whole = template([_EXAMPLE_REQUEST, {"role": "assistant", "content": "", "tool_calls": calls}])
    begin = next((at for at, pair in enumerate(zip(before, whole, strict=False)) if len({*pair}) > 1), len(before))
    written = whole[min(begin, len(before)) :]
    if any(written.count(name) != 1 for name in _NAMES):
        return None
    head, _, rest = written.partition(_NAMES[0])
    parts = [_split_at_arguments(rest), _split_at_arguments(rest.partition(_NAMES[1])[2])]
    if not all(parts):
        return None
    (middle, first, more), (second_middle, _, after) = parts  # type: ignore[misc]
    glue, _, _ = more.partition(_NAMES[1])
    tail = after[: min((found for end in ends if (found := after.find(end)) >= 0), default=len(after))]
    if second_middle != middle or json.loads(first) != _ARGUMENTS[0] or not head.strip():
        return None
    comma = '"one value"'
    return CallSyntax(
        head=head,
        middle=middle,
        glue=glue,
        tail=tail.rstrip("\n"),
        item_separator=", " if f"{comma}, " in first else ",",
        key_separator=": " if f": {comma}" in first else ":",
    )


def _split_at_arguments(text: str) -> tuple[str, str, str] | None:
    at = text.find("{")
    while at >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            return None
        if value in _ARGUMENTS:
            return text[:at], text[at:end], text[end:]
        at = text.find("{", at + 1)
    return None
