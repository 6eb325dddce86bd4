"""End an answer at its request's limit: before a stop sequence, or after a number of tokens."""

from dataclasses import dataclass

from packetgate.tools.text.tokens import estimated_tokens, first_tokens


@dataclass
class AnswerLimit:
    """Passes on the text of an answer up to its limit."""

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    """Maximum number of tokens, which are estimated."""
    text: str = ""
    """The text that was passed on."""
    is_stopped: bool = False
    """Whether a stop sequence occurred."""
    is_cut: bool = False
    """Whether the answer had more tokens."""
    _held: str = ""
    """The end of the text, which may be the beginning of a stop sequence."""
    _sure_chars: int = 0
    """Length of a text that cannot have too many tokens, because a token has at least one character."""

    @property
    def has_ended(self) -> bool:
        """Whether later text is left out."""
        return self.is_stopped or self.is_cut

    def feed(self, text: str) -> str:
        """Return the part of the answer that this text completes."""
        if self.has_ended:
            return ""
        text, held = self._held + text, 0
        ends = [at for sequence in self.stop if (at := text.find(sequence)) >= 0]
        if ends:
            self.is_stopped, text = True, text[: min(ends)]
        else:
            longest = min(len(text), max(map(len, self.stop), default=0))
            held = next((n for n in range(longest, 0, -1) if any(one.startswith(text[-n:]) for one in self.stop)), 0)
        shown, self._held = text[: len(text) - held], text[len(text) - held :]
        return self._pass_on(shown)

    def close(self, text: str = "") -> str:
        """Return the rest of an answer that this text ends."""
        rest, held, self._held = self.feed(text), self._held, ""
        return rest if self.is_cut else rest + self._pass_on(held)

    def _pass_on(self, text: str) -> str:
        whole = shown = self.text + text
        if self.max_tokens is not None and len(whole) > self._sure_chars:
            shown = first_tokens(whole, self.max_tokens)
            self.is_cut = len(shown) < len(whole)
            self._sure_chars = len(whole) + self.max_tokens - estimated_tokens(shown)
        added = (shown if self.is_cut else whole)[len(self.text) :]
        self.text += added
        return added
