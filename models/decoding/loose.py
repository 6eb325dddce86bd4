"""JSON spelled as JavaScript or Python would spell it, rewritten to JSON. Nothing is made up, left out or guessed.

Only the spelling of single tokens changes; the real decoder then reads the result, and refuses what is no JSON even so.
The libraries at hand do less: none knows both JSON5 and Python's words, and the fast one takes a key given twice.
"""

import json
import re

_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<key>[^\W\d][\w$-]*+)(?=\s*+:)
      | (?P<bare>[\w$.+-]++)
      | (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
      | (?P<comment>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
      | (?P<mark>[{}\[\],:])
      | (?P<unclosed>["'])
    )""",
    re.VERBOSE | re.DOTALL,
)
_QUOTE = re.compile(r"""\\(.)|\"""", re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_MARKS = frozenset("{}[],:")


def to_json(text: str, at: int) -> tuple[str | None, int]:
    """Rewrite the object or list that begins at `at`.

    Returns:
        The JSON, None when no spelling makes it JSON; and where the reading ended.
    """
    written: list[str] = []
    depth = 0
    while token := _TOKEN.match(text, at):
        kind = str(token.lastgroup)
        if kind == "unclosed":
            return None, len(text)
        if kind in {"key", "bare", "string"} and written and written[-1] not in _MARKS:
            return None, at  # two values side by side: a comma is missing, or this is prose
        at = token.end()
        piece = token[kind]
        if kind == "mark" and piece in "}]" and written[-1] == "," and written[-2] not in {"{", "[", ","}:
            written.pop()
        if kind != "comment":
            written.append(_rewritten(kind, piece))
        depth += (piece in {"{", "["}) - (piece in {"}", "]"})
        if depth == 0:
            return " ".join(written), at
    return None, at


def _rewritten(kind: str, piece: str) -> str:
    if kind == "string":
        return '"' + _QUOTE.sub(_in_double_quotes, piece[1:-1]) + '"'
    if kind == "key":
        return json.dumps(piece)
    return _WORDS.get(piece, piece)


def _in_double_quotes(match: re.Match[str]) -> str:
    if match[1] is None:
        return '\\"'
    return "'" if match[1] == "'" else match[0]
