"""Walking through what a model wrote, past all that is not its answer: thoughts, and echoes of what tools returned."""

import re
from collections.abc import Callable

from models.decoding.values import THOUGHT_END, Reading

_THOUGHT_BEGIN = r"<(?:think|thinking|reasoning)>|\[THINK\]"

ASIDES = rf"""
    (?P<thought> {_THOUGHT_BEGIN} )
  | (?P<thought_end> {THOUGHT_END} )
  | (?P<echo> <tool_response> | <<<tool\ output\ (?P<fence>[^:\n]{{1,80}}): )
"""
"""What begins or ends an aside; to be joined with what begins an answer. Its flags are `FLAGS`."""

FLAGS = re.VERBOSE | re.IGNORECASE | re.ASCII

_THOUGHT = re.compile(_THOUGHT_BEGIN, FLAGS)


def scan(text: str, marks: re.Pattern[str], read_at: Callable[[str, re.Match[str]], Reading]) -> list[Reading]:
    """Return what `read_at` makes of every mark outside asides, in order, the broken included.

    A thought holds drafts, not answers, so what stands in one, or before the end of one whose beginning the chat
    template wrote, does not count. A thought that never ends was either cut off or its end forgotten: a thing counts
    there only as the very last of the text. An echo that never ends holds no answer.
    """
    found: list[Reading] = []
    at = 0
    while mark := marks.search(text, at):
        match mark.lastgroup:
            case "thought" | "echo":
                end = _end_of(mark).search(text, mark.end())
                if end is None:
                    return found + (_last_thing(text, marks, read_at) if mark.lastgroup == "thought" else [])
                at = end.end()
            case "thought_end":
                found.clear()
                at = mark.end()
            case _:
                found.append(read_at(text, mark))
                at = found[-1].end
    return found


def _end_of(mark: re.Match[str]) -> re.Pattern[str]:
    """Return what ends the aside. A tool's text may hold ends too, but not its fence's id."""
    if mark["fence"] is not None:
        return re.compile(re.escape(f"<<<end of tool output {mark['fence']}>>>"), re.IGNORECASE)
    return re.compile(re.escape(f"{mark[0][0]}/{mark[0][1:]}"), re.IGNORECASE)


def _last_thing(text: str, marks: re.Pattern[str], read_at: Callable[[str, re.Match[str]], Reading]) -> list[Reading]:
    """Return what a thought that never ends has for its last thing."""
    *_, opening = _THOUGHT.finditer(text)
    thought = text[opening.end() :].rstrip("` \t\r\n")
    last = scan(thought, marks, read_at)[-1:]
    if last and last[0].value is not None and last[0].end == len(thought):
        return last
    return [Reading(None, len(text), "it breaks off while it is still thinking")]
