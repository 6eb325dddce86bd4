"""Probabilities of the choices in an answer, from the probabilities of its tokens."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packetgate.models.schemas import Choice

TokenWeights = Callable[[Sequence[bytes]], Mapping[bytes, float]]
"""Given texts that may follow, returns the tokens that `continues` one of them, each with its weight.

TokenWeights are relative: only their ratios matter.
"""

Path = tuple[str | int, ...]

_SPACE = b" \t\r\n"
_AFTER_VALUE = b",}]" + _SPACE


@dataclass(frozen=True)
class MeasuredChoice:
    """One measured choice of an answer."""

    path: Path
    value: str
    probability: float
    """Probability of this option, given that one of the options is written."""
    among: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    """The probability of every option."""


def continues(token: bytes, text: bytes) -> bool:
    """Whether a token is a prefix of `text`, or all of it and the end of the value."""
    if text.startswith(token):
        return True
    return token.startswith(text) and token[len(text) : len(text) + 1] in _AFTER_VALUE


class ChoiceMeter:
    """Measures choices token by token; a choice of several tokens over all of them."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.measured: list[MeasuredChoice] = []
        self._choices = choices
        self._paths = JsonPaths()
        self._open: _OpenChoice | None = None

    def feed(self, token: bytes, weights: TokenWeights | None) -> None:
        """Take the next token and the weights of its alternatives; None: the token was forced."""
        begun = self._paths.feed(token)
        self._step(token, 0, weights)
        for path, offset in begun:
            choice = next((one for one in self._choices if one.stands_at(path)), None)
            if choice is not None and self._open is None:
                self._open = _OpenChoice(path, choice, lead=token[:offset])
                self._step(token, offset, weights)

    def _step(self, token: bytes, before: int, weights: TokenWeights | None) -> None:
        if self._open is not None:
            self._open.step(token, before, weights)
            if self._open.ended:
                self.measured += self._open.result()
                self._open = None


class _OpenChoice:
    def __init__(self, path: Path, choice: Choice, lead: bytes) -> None:
        self.path = path
        self.ended = False
        self._written = b""
        self._lead = lead
        self._options = {option: option.encode() for option in choice.options}
        self._earned = dict.fromkeys(choice.options, 0.0)
        self._undecided = 1.0

    def step(self, token: bytes, before: int, weights: TokenWeights | None) -> None:
        if weights is not None:
            self._weigh(token, before, weights)
        self._lead = b""
        self._written += token[before:]
        self._options = {option: text for option, text in self._options.items() if self._fits(text)}
        self.ended = all(self._has_ended(text) for text in self._options.values())

    def result(self) -> Iterable[MeasuredChoice]:
        for option, text in self._options.items():
            probability = min(1.0, self._earned[option] + self._undecided)
            if self._has_ended(text) and probability > 0:
                yield MeasuredChoice(self.path, option, probability, {**self._earned, option: probability})

    def _weigh(self, token: bytes, before: int, weights: TokenWeights) -> None:
        done = len(self._written)
        rests = {option: self._lead + text[done:] for option, text in self._options.items()}
        possible = {one: weight for one, weight in weights(list(rests.values())).items() if len(one) > before}
        total = sum(possible.values()) or 1.0
        followed = 0.0
        for one, weight in possible.items():
            able = [option for option, rest in rests.items() if continues(one, rest)]
            if len(able) == 1:
                self._earned[able[0]] += self._undecided * weight / total
            elif one == token:
                followed = weight / total
        self._undecided *= followed

    def _fits(self, text: bytes) -> bool:
        return text.startswith(self._written) or continues(self._written, text)

    def _has_ended(self, text: bytes) -> bool:
        return len(self._written) >= len(text) + text[-1:].isdigit()


class JsonPaths:
    """Finds where each value of a JSON text begins, piece by piece. Results for invalid JSON are undefined."""

    def __init__(self) -> None:
        self._open: list[str | int | None] = []
        self._string: bytearray | None = None
        self._escaped = False
        self._in_value = False

    def feed(self, piece: bytes) -> list[tuple[Path, int]]:
        """Read the next piece; return the path and offset of each value that begins in it."""
        return [(path, at) for at, byte in enumerate(piece) if (path := self._step(byte)) is not None]

    def _step(self, byte: int) -> Path | None:
        if self._string is not None:
            self._in_string(self._string, byte)
            return None
        char = bytes((byte,))
        if char in b",}]:":
            self._in_value = False
            if char == b"," and self._open:
                self._open[-1] = self._open[-1] + 1 if isinstance(self._open[-1], int) else None
            elif char in b"}]":
                del self._open[-1:]
            return None
        if char in _SPACE or self._in_value:
            return None
        path = tuple(part for part in self._open if part is not None)
        if char == b'"':
            self._string = bytearray()
            return None if self._wants_key else path
        if char in b"{[":
            self._open.append(None if char == b"{" else 0)
        else:
            self._in_value = True
        return path

    def _in_string(self, string: bytearray, byte: int) -> None:
        if self._escaped or byte != ord('"'):
            self._escaped = byte == ord("\\") and not self._escaped
            string.append(byte)
            return
        if self._wants_key:
            self._open[-1] = string.decode("utf-8", "replace")
        self._string = None

    @property
    def _wants_key(self) -> bool:
        return self._open[-1:] == [None]
