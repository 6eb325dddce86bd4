"""How probable a model found the calls that it wrote: their names, and the value of each argument."""

import math
from collections.abc import Iterator
from itertools import accumulate

from packetgate.models.calling import WrittenCall
from packetgate.models.choices import JsonPaths
from packetgate.models.llama.call_syntax import CallSyntax
from packetgate.models.llama.engine import Answer

Span = tuple[int, int]
"""From and up to which byte."""


def measured_calls(syntax: CallSyntax, answer: Answer) -> tuple[WrittenCall, ...]:
    """Return the calls of an answer that was held to calls."""
    text = answer.text
    begins = list(accumulate((one.size for one in answer.tokens), initial=0))

    def bytes_of(span: Span) -> Span:
        return len(text[: span[0]].encode()), len(text[: span[1]].encode())

    def probability(span: Span) -> float:
        """Return that of the tokens that begin within a span, together."""
        return math.prod(
            one.probability for one, at in zip(answer.tokens, begins, strict=False) if span[0] <= at < span[1]
        )

    read = syntax.read(text, next((head for head in _heads(syntax) if text.startswith(head)), None))
    calls = []
    for one in read:
        begin, end = bytes_of(one.arguments_at)
        values = {name: probability(span) for name, span in _values(text.encode()[begin:end], begin)}
        calls.append(WrittenCall(one.name, one.arguments, probability(bytes_of(one.name_at)), values))
    return tuple(calls)


def _heads(syntax: CallSyntax) -> Iterator[str]:
    for at in range(len(syntax.head)):
        yield syntax.head[at:]


def _values(written: bytes, offset: int) -> Iterator[tuple[str, Span]]:
    found = [(str(path[0]), at) for path, at in JsonPaths().feed(written) if len(path) == 1]
    ends = [*(at for _, at in found[1:]), len(written)]
    for (name, begin), end in zip(found, ends, strict=False):
        yield name, (offset + begin, offset + end)
