"""Write random texts that a grammar allows."""

from random import Random

import numpy as np
from llguidance import LLMatcher

from packetgate.models.call_syntax import CallSyntax
from packetgate.models.llama.grammar import CallForm, Grammars, Mask
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.model import OfferedTool
from packetgate.models.schemas import Schema

LONGEST = 3000
CLOSING = (b'"', b"}", b"]", b",")


BARE = CallSyntax("", "", "", "", ",", ":")
NAME = "t"


def text_schema(limit: int) -> Schema:
    """Return the schema of a text of at most `limit` characters."""
    return {"type": "string", "maxLength": limit}


def call_of(parameters: Schema) -> CallForm:
    """Return the form of one call: the name `t`, and a JSON object of these parameters."""
    return CallForm((OfferedTool(NAME, "", parameters),), BARE, max_calls=1)


class RandomWriter:
    """Chooses allowed tokens at random, with a slight preference for closing tokens."""

    def __init__(self, weights: LlamaWeights) -> None:
        self.grammars = Grammars(weights)
        self._weights = weights
        self._mask = Mask(weights)

    def write(self, parameters: Schema, seed: int) -> bytes:
        """Return complete random arguments of these parameters."""
        random, matcher = Random(seed), self._matcher(parameters)
        text = b""
        for _ in range(LONGEST):
            allowed = self._allowed(matcher)
            closing = [token for token in allowed if self._weights.pieces[token] in CLOSING]
            token = random.choice(closing if closing and random.random() < 0.2 else allowed)
            if self._weights.is_end(token):
                return text
            assert matcher.consume_token(token), matcher.get_error()
            text += self._weights.pieces[token]
            if matcher.is_stopped():
                return text
        raise AssertionError(f"after {LONGEST} tokens it has not ended: {text[-200:]!r}")

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text: bytes, in a tiny model."""
        return self._weights.tokenize(text, special=False)

    def takes(self, parameters: Schema, text: str) -> bool:
        """Return whether the grammar accepts the text as complete arguments."""
        matcher, tokens = self._matcher(parameters), self.tokens(text)
        return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

    def starts(self, parameters: Schema, text: str) -> bool:
        """Return whether the grammar accepts the text as the beginning of arguments."""
        matcher, tokens = self._matcher(parameters), self.tokens(text)
        return matcher.try_consume_tokens(tokens) == len(tokens)

    def following(self, parameters: Schema, text: str) -> list[bytes]:
        """Return the texts of the tokens that may follow; the end token has no text."""
        matcher = self._matcher(parameters)
        assert matcher.consume_tokens(self.tokens(text)), matcher.get_error()
        return [self._weights.pieces[token] for token in self._allowed(matcher)]

    def _matcher(self, parameters: Schema) -> LLMatcher:
        matcher = self.grammars.grammar(call_of(parameters)).matcher
        assert matcher.consume_tokens(self.tokens(NAME)), matcher.get_error()
        return matcher

    def _allowed(self, matcher: LLMatcher) -> list[int]:
        logits = np.zeros(self._weights.size, np.float32)
        self._mask.apply(matcher, logits)
        return np.flatnonzero(np.isfinite(logits)).tolist()
