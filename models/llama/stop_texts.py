"""Texts that end an answer, found also when they come in pieces."""

from collections.abc import Sequence


class StopTexts:
    """Lets text through up to the stop text that is complete first; holds back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.met = False
        self._stops = [stop for stop in stops if stop]
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take the next piece; return what is sure to stand before any stop text."""
        if self.met:
            return ""
        held = self._held + piece
        found = [(at + len(stop), at) for stop in self._stops if (at := held.find(stop)) >= 0]
        if found:  # the one that ends first, so that nothing depends on how the text is cut into pieces
            self.met, self._held = True, ""
            return held[: min(found)[1]]
        keep = max((_overlap(held, stop) for stop in self._stops), default=0)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def rest(self) -> str:
        """Return what was held back, now that no more comes."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Return how much of the text's end is the beginning of `stop`."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
