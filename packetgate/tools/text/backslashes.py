"""Restore backslashes that a model did not escape: `"C:\\temp\\new"` in JSON has a tab and a line break."""

import re
from collections.abc import Mapping
from typing import Any

_WRITTEN = re.compile(r"[^\s\"'`]*\\[^\s\"'`]+|(?<=[\"'`])[^\"'`\n]*\\[^\"'`\n]+(?=[\"'`])")
_BACKSLASHES = re.compile(r"(\\+)")
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "b": r"\x08", "f": r"\f"}
_END = ".,;:!?)"


def restore_backslashes(params: Mapping[str, Any], words: str) -> dict[str, Any]:
    """Return arguments in which texts with backslashes, such as Windows paths, are as the user wrote them."""
    restored = dict(params)
    for written in dict.fromkeys(match[0].rstrip(_END) for match in _WRITTEN.finditer(words)) if "\\" in words else ():
        form = _any_form_of(written)
        restored = {name: _restored(value, form, written) for name, value in restored.items()}
    return restored


def _any_form_of(written: str) -> re.Pattern[str]:
    """Return a pattern of a text whose backslashes are doubled, single, or an escape with the letter after them."""
    first, *rest = _BACKSLASHES.split(written)
    pattern = re.escape(first)
    for backslashes, text in zip(rest[::2], rest[1::2], strict=True):
        pattern += rf"(?:\\{{1,{2 * len(backslashes)}}}{re.escape(text[:1])}"
        pattern += rf"|\\*{_CONTROLS[text[0]]})" if text[:1] in _CONTROLS else ")"
        pattern += re.escape(text[1:])
    return re.compile(pattern)


def _restored(value: Any, form: re.Pattern[str], written: str) -> Any:
    if isinstance(value, str):
        return form.sub(lambda _: written, value)
    if isinstance(value, list):
        return [_restored(one, form, written) for one in value]
    if isinstance(value, dict):
        return {key: _restored(one, form, written) for key, one in value.items()}
    return value
