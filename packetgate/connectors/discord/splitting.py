"""Long answers in pieces that Discord takes, each with its code blocks whole."""

import re
from collections.abc import Iterator

LIMIT = 2_000
"""The most characters of a message."""
LONGEST_OPENING = 40
"""Characters of a fence with its language; a longer one is opened again without it."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*(.*)")


def split(text: str, limit: int = LIMIT) -> list[str]:
    """Return the text in pieces of at most `limit` characters, none of them blank.

    It is cut between lines where that can be. A code block that goes on in the next piece is closed at the end of one
    and opened again, with its language, at the beginning of the next.
    """
    pieces: list[str] = []
    lines: list[str] = []
    opening, is_new = "", False
    for line, goes_on in _short_lines(text, limit - 2 * (LONGEST_OPENING + 1)):
        after = opening if goes_on else _after(opening, line)
        closing = f"\n{_mark(after)}" if after else ""
        if lines and (goes_on or len("\n".join([*lines, line])) + len(closing) > limit):
            pieces.append(_closed(lines, opening, is_new=is_new))
            lines = [opening] if opening else []
        lines.append(line)
        opening, is_new = after, bool(after) and not opening
    pieces.append(_closed(lines, opening))
    return [piece for piece in pieces if piece.strip()]


def harmless(text: str) -> str:
    """Return text that closes no code block; made so twice, it is the same."""
    return re.sub("`{3,}", lambda marks: "\u200b".join(marks[0]), text)


def code_block(text: str, language: str = "") -> str:
    """Return text as a code block that nothing in it can close."""
    return f"```{language}\n{harmless(text)}\n```"


def _closed(lines: list[str], opening: str, *, is_new: bool = False) -> str:
    """Return lines as one piece; a code block that the last of them has only just opened is left to the next."""
    if is_new:
        return "\n".join(lines[:-1])
    return "\n".join([*lines, _mark(opening)] if opening else lines)


def _short_lines(text: str, longest: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines, too long ones in parts, cut at a space near the end; and whether it is a later part of one."""
    for whole in text.split("\n"):
        line, goes_on = whole, False
        while len(line) > longest:
            space = line.rfind(" ", longest // 2, longest)
            end = space + 1 if space > 0 else longest
            yield line[:end], goes_on
            line, goes_on = line[end:], True
        yield line, goes_on


def _after(opening: str, line: str) -> str:
    """Return the fence that is open after a line: the line that opened it, empty where none is."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return opening
    mark, language = found.groups()
    if opening:
        closes = mark[0] == _mark(opening)[0] and len(mark) >= len(_mark(opening)) and not language
        return "" if closes else opening
    if "`" in language:
        return ""
    return next((one for one in (mark + language, mark) if len(one) <= LONGEST_OPENING), mark[:3])


def _mark(opening: str) -> str:
    """Return the fence alone, without its language."""
    return opening[: len(opening) - len(opening.lstrip(opening[0]))]
