"""Malformed and hostile model outputs, each with the decision that must follow."""

import json
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Outcome:
    """What a selection settles to; `refused` is a text that counts as no answer at all."""

    kind: Literal["call", "none", "clarify", "describe", "miss", "refused"]
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class Hostile:
    """One output of a model that chooses tools."""

    id: str
    text: str
    expected: Outcome


def calling(*calls: tuple[str, dict[str, Any]]) -> Outcome:
    """Return the outcome that these calls, and only these, go on to the review."""
    return Outcome("call", calls)


def own(tool: str, confidence: Any = 0.9, **params: Any) -> str:
    """Return one call in the form that the prompt asks for."""
    return json.dumps(
        {"action": "call", "calls": [{"tool": tool, "params": params}], "reasoning": "r", "confidence": confidence}
    )


def plain(tool: str, **arguments: Any) -> str:
    """Return one call as most families write it."""
    return json.dumps({"name": tool, "arguments": arguments})


READ = own("files.read_file", path="b.txt")
"""The answer meant in most rows; the request itself names another file."""
DELETE = own("files.delete_file", path="b.txt")
"""What must not be taken for the answer."""
NATIVE_READ = plain("files.read_file", path="b.txt")
NATIVE_DELETE = plain("files.delete_file", path="b.txt")
SAID_NONE = '{"action": "none", "reasoning": "r", "confidence": 0.9}'

READS = calling(("files.read_file", {"path": "b.txt"}))
READS_AND_LISTS = calling(("files.read_file", {"path": "b.txt"}), ("files.list_directory", {"path": "d"}))
NONE = Outcome("none")
MISS = Outcome("miss")
REFUSED = Outcome("refused")
