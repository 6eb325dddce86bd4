"""A vocabulary as the grammar engine wants it: what each token writes, and the tokens of a text that must come."""

from collections.abc import Sequence

from packetgate.models.llama.weights import LlamaWeights

_BEFORE = b"\n"
"""Read before a text, so that what many vocabularies put before a text's beginning is not put before the text."""


class Vocabulary:
    """Takes a token for what it writes into an answer, and nothing else.

    `llguidance.llamacpp` knows no other way than llama.cpp's tokenizer. That reads a text as the beginning of one, with
    a space before it, cuts it at user-defined tokens that a grammar does not see, and needs a control character that
    is one token, which not all vocabularies have.
    """

    bos_token_id = None

    def __init__(self, weights: LlamaWeights) -> None:
        self._weights = weights
        ends = [token for token in range(weights.size) if weights.is_end(token)]
        self.ends = ends or [weights.size]
        """Tokens that end an answer. Where there are none, one that is never written: it ends where its form does."""
        self.eos_token_id = self.ends[0]
        self.tokens: Sequence[bytes] = [*weights.pieces, *([] if ends else [b""])]
        self.special_token_ids = [token for token, piece in enumerate(self.tokens) if not piece]
        self._by_text = {piece: token for token, piece in reversed([*enumerate(weights.pieces)]) if piece}
        self._longest = max(map(len, self._by_text), default=0)

    def __call__(self, text: bytes) -> list[int]:
        """Return tokens that write exactly this text: the model's own where they do."""
        return self._own(text) or self._longest_first(text)

    def _own(self, text: bytes) -> list[int]:
        tokens = self._weights.tokenize(_BEFORE + text, special=False)
        written = [self._weights.pieces[token] for token in tokens]
        while written and (not all(written) or b"".join(written) != text):
            del tokens[0], written[0]
        return tokens

    def _longest_first(self, text: bytes) -> list[int]:
        tokens: list[int] = []
        at = 0
        while at < len(text):
            ends = range(min(len(text), at + self._longest), at, -1)
            end = next((end for end in ends if text[at:end] in self._by_text), None)
            if end is None:
                break
            tokens.append(self._by_text[text[at:end]])
            at = end
        return tokens
