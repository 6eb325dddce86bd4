"""Remove sentences of Packetgate's own prompts from answers: small models repeat their instructions."""

import re
from collections.abc import Iterable
from functools import cache

from packetgate.prompts.rendering import load_prompts

ONLY_ECHOES = "I have no answer: the model only repeated its instructions."
"""The answer to the user if the model's answer was only sentences of the prompt."""
_LEAST_WORDS = 5
"""Shortest sentence that counts as an echo, in words."""
_CLAUSE_END = re.compile(r"[.!?:;]+(?=\s)\s*|\n+")
_WORD = re.compile(r"[^\W_]+")
_PLACEHOLDER = re.compile(r"\$\w+|\$\{\w+\}")


def without_echoes(text: str, known: Iterable[str]) -> str:
    """Return an answer without sentences of the prompts. See `EchoFilter`."""
    echoes = EchoFilter(known)
    return (echoes.feed(text) + echoes.close()).strip()


class EchoFilter:
    """Removes sentences of the prompts from a streamed answer, unless the user's words or a result contain them.

    Holds text back only while it may be such a sentence. A sentence also ends at a colon, a semicolon or a line break.
    """

    def __init__(self, known: Iterable[str]) -> None:
        """`known`: the user's words and the results."""
        self.has_text = False
        self._known = [*known]
        self._held = ""
        self._diverged = False  # whether the current sentence is not from the prompts

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        self._held += text
        shown = ""
        while end := _CLAUSE_END.search(self._held):
            clause, self._held = self._held[: end.end()], self._held[end.end() :]
            shown += self._unless_echo(clause)
        self._diverged = self._diverged or _words(self._held).rstrip() not in _prompt_words()
        if self._diverged:
            end_at = len(self._held.rstrip(".!?:;"))
            shown, self._held = shown + self._held[:end_at], self._held[end_at:]
        self.has_text = self.has_text or bool(shown.strip())
        return shown

    def close(self) -> str:
        """Return the rest of the text, which was held back."""
        shown, self._held = self._unless_echo(self._held), ""
        self.has_text = self.has_text or bool(shown.strip())
        return shown

    def _unless_echo(self, clause: str) -> str:
        words, diverged = _words(clause), self._diverged
        self._diverged = False
        if diverged or words.count(" ") <= _LEAST_WORDS or words not in _prompt_words():
            return clause
        return clause if any(words in _words(text) for text in self._known) else ""


def _words(text: str) -> str:
    """Return the words of a text, each between spaces."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


@cache
def _prompt_words() -> str:
    return "|".join(_words(part) for prompt in load_prompts() for part in _PLACEHOLDER.split(prompt))
