"""Pythonic calls that stand alone on a line, cut out of a text while it arrives."""

import re
from collections.abc import Iterator

from packetgate.models.decoding.native_calls import is_list_of_calls

_LONGEST = 4_000
"""Characters of a line that is held back for the calls that it may be."""
_MAY_BE_LIST = re.compile(r"\[(?:\s*(?:[^\W\d][\w.]*(?:\(.*)?)?)?")


class LineFilter:
    """Cuts lists of calls out; holds back only a line that begins like one."""

    def __init__(self, found: int = 0) -> None:
        self.found = found
        self._begins = False
        self._held = ""

    def feed(self, text: str) -> Iterator[str]:
        """Return what can be shown now."""
        for part in (self._held + text).splitlines(keepends=True):
            begins = self._begins or bool(self._held)
            self._held = ""
            if begins and _MAY_BE_LIST.fullmatch(part) and len(part) < _LONGEST:
                self._held = part
                return
            if begins and part.startswith("[") and is_list_of_calls(part):
                self.found += 1
                yield "\n"
            else:
                yield part
            self._begins = part.endswith("\n")

    def close(self) -> Iterator[str]:
        """Return the rest: the text, or this part of it, is at its end."""
        held, self._held, self._begins = self._held, "", False
        if held and is_list_of_calls(held):
            self.found += 1
        elif held:
            yield held
