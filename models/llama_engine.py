"""One loaded llama.cpp model and the one thread that works it."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.llama_loading import load_llama
from state.errors import DecisionError


@dataclass(frozen=True)
class Answer:
    """What a request came to: the whole text, why it ended (`stop`, `length`, `cancelled`), and its tokens."""

    text: str
    finish_reason: str
    input_tokens: int
    output_tokens: int


class LlamaEngine:
    """A model in memory. Its single worker thread answers requests one at a time, in order, for every event loop."""

    def __init__(self, path: str, options: Mapping[str, int] | None = None) -> None:
        """Load the model. Blocking, for seconds.

        Raises:
            ModelError: llama-cpp-python is not installed, or the file cannot be loaded.
        """
        self.name = Path(path).name
        self._llama = load_llama(path, options or {})
        self._tokenizer = _CountingTokenizer(self._llama.tokenizer_)
        self._llama.tokenizer_ = self._tokenizer
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"llamacpp-{self.name}")

    def submit(
        self,
        messages: Sequence[Mapping[str, Any]],
        sampling: Mapping[str, Any],
        cancelled: threading.Event,
        on_text: Callable[[str], None] = lambda _: None,
    ) -> Future[Answer]:
        """Queue a request; `on_text` gets the answer's pieces, on the worker's thread. Setting `cancelled` ends it."""
        return self._worker.submit(self._answer, messages, sampling, cancelled, on_text)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens of the model's vocabulary the text takes."""
        return len(self._tokenizer.inner.tokenize(text.encode("utf-8", "replace"), add_bos=False, special=False))

    def _answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        sampling: Mapping[str, Any],
        cancelled: threading.Event,
        on_text: Callable[[str], None],
    ) -> Answer:
        pieces: list[str] = []
        finish_reason = "cancelled"
        with self._named_errors():
            chunks = self._llama.create_chat_completion(messages=list(messages), stream=True, **sampling)
            for chunk in chunks:
                choice = chunk["choices"][0]
                piece = choice["delta"].get("content")
                if piece:
                    pieces.append(piece)
                    on_text(piece)
                finish_reason = choice["finish_reason"] or finish_reason
                if cancelled.is_set():
                    chunks.close()
                    break
        # The last token of an answer cut by its limit is never evaluated, so it is not in n_tokens.
        total = self._llama.n_tokens + (finish_reason == "length")
        prompt = self._tokenizer.last_count
        return Answer("".join(pieces), finish_reason, prompt, max(0, total - prompt))

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        from jinja2 import TemplateError  # comes with llama-cpp-python

        try:
            yield
        except (ValueError, RuntimeError) as error:
            self._llama.reset()
            if "exceed context window" in str(error):
                raise DecisionError(
                    f"the prompt is too long for {self.name}: {self._tokenizer.last_count} tokens, its context holds "
                    f"{self._llama.n_ctx()}; load it with a larger one: llamacpp:PATH?n_ctx=N"
                ) from error
            raise DecisionError(f"{self.name} failed to answer: {error}") from error
        except TemplateError as error:
            raise DecisionError(f"the chat template of {self.name} refuses these messages: {error}") from error


class _CountingTokenizer:
    """llama.cpp's tokenizer, remembering the last count: nothing else tells a streamed prompt's length."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.last_count = 0

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        tokens: list[int] = self.inner.tokenize(text, add_bos, special)
        self.last_count = len(tokens)
        return tokens

    def detokenize(self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False) -> bytes:
        text: bytes = self.inner.detokenize(tokens, prev_tokens=prev_tokens, special=special)
        return text
