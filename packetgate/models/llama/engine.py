"""One loaded llama.cpp model and its worker thread."""

import codecs
import random
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from packetgate.models.decoding import begins_call
from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.grammar import CallForm, Grammar, Grammars, Mask
from packetgate.models.llama.prompt import Chat, PromptWriter, ToolDefinitions
from packetgate.models.llama.weights import LlamaWeights
from packetgate.state.errors import DecisionError
from packetgate.state.private_names import call_before_threads_end

with suppress(ImportError):  # `check_installed` reports a missing package
    import llama_cpp

FinishReason = Literal["stop", "length", "cancelled", "words"]
"""`words`: the answer began with text and not with a call, and was stopped."""

TOP_K, MIN_P = 40, 0.05
"""llama.cpp's defaults."""
_PENALTY_TOKENS, _PENALTY = 64, 1.1
"""Number of last tokens whose repetition is penalized, and the penalty; prevents loops of small models."""
_PERIODS, _LOOP_TOKENS, _LOOP_WINDOW = 4, 48, 160
"""Least repetitions, and repeated tokens, in a loop; number of last tokens that are checked."""
_LIKELY, _NEGLIGIBLE = 64, 0.05
"""Number of examined first tokens; share of tokens that may or may not begin a call, below which they are ignored."""
_MEASURABLE_PROMPT = 100
"""Length of the shortest prompt that is used to measure the speed, in tokens."""
_PEEKED_TOKENS = 8
_CALL_PROBABILITY = 0.5
"""Lowest call probability at which the answer becomes a call."""
_AFTER_WORD = tuple(b",}] \t\r\n"[at : at + 1] for at in range(7))
"""Bytes that end a word within a token."""


@dataclass(frozen=True)
class Request:
    """Messages, form and sampling of one request to the engine."""

    chat: Chat
    sampling: Mapping[str, Any]
    """`max_tokens` and `temperature`; `top_p` and `seed` may be given.

    `enable_thinking` switches the thoughts of the template on or off before text; calls have none.
    """
    form: CallForm | None = None
    """The calls that the grammar allows; None: text."""
    must_call: bool = False
    measured_words: tuple[str, ...] = ()
    """If not empty, the engine writes no answer, but measures the probability that it begins with each word."""
    words_only: bool = False
    tools: ToolDefinitions = ()
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Event that stops the request at its next token, or at the next batch of the prompt."""
    on_text: Callable[[str], None] = lambda _: None
    """Receives each piece of the answer, in the worker thread."""


class WrittenToken(NamedTuple):
    """A written token: its size in bytes, and its probability among the tokens that the grammar allows."""

    size: int
    probability: float


@dataclass(frozen=True)
class EngineAnswer:
    """The text, tokens and measurements of a finished request."""

    text: str
    finish_reason: FinishReason
    input_tokens: int
    cached_tokens: int
    """Input tokens that were cached from an earlier prompt."""
    tokens: tuple[WrittenToken, ...] = ()
    word_probabilities: Mapping[str, float] = field(default_factory=dict)
    """Probabilities of the request's `measured_words`; they sum to 1."""
    widened_tools: tuple[str, ...] = ()
    """Tools whose arguments no grammar can enforce in full."""
    call_probability: float | None = None
    """Probability that the answer begins with a call; None: no tools were offered."""


class Sampler:
    """The samplers of one request, in llama.cpp's usual order."""

    def __init__(self, sampling: Mapping[str, Any]) -> None:
        seed = sampling.get("seed")
        self._chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        weakref.finalize(self, llama_cpp.llama_sampler_free, self._chain)
        if sampling["temperature"] <= 0:
            samplers = [llama_cpp.llama_sampler_init_greedy()]
        else:
            samplers = [
                llama_cpp.llama_sampler_init_top_k(TOP_K),
                llama_cpp.llama_sampler_init_top_p(sampling.get("top_p", 0.95), 1),
                llama_cpp.llama_sampler_init_min_p(MIN_P, 1),
                llama_cpp.llama_sampler_init_temp(sampling["temperature"]),
                llama_cpp.llama_sampler_init_dist(random.getrandbits(31) if seed is None else seed),
            ]
        for one in samplers:
            llama_cpp.llama_sampler_chain_add(self._chain, one)

    def sample(self, context: LlamaContext) -> int:
        """Return the next token from the context's logits."""
        token: int = llama_cpp.llama_sampler_sample(self._chain, context.handle, -1)
        return token


def ends_in_loop(tokens: Sequence[int]) -> bool:
    """Whether an answer ends in a repeated sequence of tokens."""
    for period in range(1, len(tokens) // _PERIODS + 1):
        length = max(_LOOP_TOKENS, _PERIODS * period)
        if length > len(tokens):
            return False
        end = tokens[-length:]
        if end[period:] == end[:-period]:
            return True
    return False


class LlamaEngine:
    """A loaded model. One worker thread answers the requests of all event loops in order."""

    def __init__(self, path: str, options: Mapping[str, int] | None = None) -> None:
        """Load the model; blocks for seconds. Raise ModelError if the file cannot be loaded."""
        options = options or {}
        self.weights = LlamaWeights(path, options)
        self.name = self.weights.name
        self._context = LlamaContext(self.weights, options)
        self.prompts = PromptWriter(self.weights)
        self._grammars = Grammars(self.weights)
        self._word_tokens: dict[tuple[str, ...], dict[str, list[int]]] = {}
        self.context_size = self._context.size
        """Context size in tokens, for prompt and answer together."""
        self.reading_speed: float | None = None
        """Prompt tokens per second, measured on the first long prompt; None: not measured yet."""
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"llamacpp-{self.name}")

    def submit(self, request: Request) -> Future[EngineAnswer]:
        """Queue a request for the worker thread."""
        _running.add(request.cancelled)
        return self._worker.submit(self._answer, request)

    def _answer(self, request: Request) -> EngineAnswer:
        form = request.form
        thinking = form is None and request.sampling.get("enable_thinking", True)
        prompt = self.prompts.write(request.chat, request.tools, thinking=thinking)
        grammar = self._grammars.grammar(form) if form else None
        begun = perf_counter()
        known = self._context.read(prompt.tokens, request.cancelled)
        evaluated = len(prompt.tokens) - known
        if self.reading_speed is None and evaluated >= _MEASURABLE_PROMPT and not request.cancelled.is_set():
            self.reading_speed = evaluated / (perf_counter() - begun)
        pieces: list[str] = []

        def emit(text: str) -> None:
            if text:
                pieces.append(text)
                request.on_text(text)

        if prompt.thought and form is None:
            emit(prompt.thought.begin)  # the answer needs the begin mark of a thought that the prompt opened
        reason: FinishReason = "length"
        limit = 0 if request.measured_words else min(request.sampling["max_tokens"], self._context.room)
        words = self._word_probabilities(request.measured_words) if request.measured_words else {}
        call_probability = self._call_probability(request) if form else None
        if call_probability is not None and call_probability < _CALL_PROBABILITY and not request.must_call:
            reason, limit = "words", 0
        if request.words_only and not prompt.thought:
            self._context.logits[self._may_begin_call] = -np.inf
        tokens: list[WrittenToken] = []
        if limit:
            tokens, reason = self._write(request, grammar, limit, emit)
        if grammar and grammar.matcher.is_error():
            raise DecisionError(f"{self.name} does not support these tools: {grammar.matcher.get_error()}")
        return EngineAnswer(
            text="".join(pieces),
            finish_reason=reason,
            input_tokens=len(prompt.tokens),
            cached_tokens=known,
            tokens=tuple(tokens),
            word_probabilities=words,
            widened_tools=grammar.widened_tools if grammar else (),
            call_probability=call_probability,
        )

    def _write(
        self, request: Request, grammar: Grammar | None, limit: int, emit: Callable[[str], None]
    ) -> tuple[list[WrittenToken], FinishReason]:
        """Write at most `limit` tokens; return them, and why the answer ended."""
        sampler = Sampler(request.sampling)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        ids: list[int] = []
        written: list[WrittenToken] = []
        while len(ids) < limit:
            if request.cancelled.is_set():
                return written, "cancelled"
            logits = self._context.logits
            if grammar:
                self._mask.apply(grammar.matcher, logits)
            elif request.sampling["temperature"] > 0:
                recent = [*{*ids[-_PENALTY_TOKENS:]}]
                logits[recent] = np.where(logits[recent] > 0, logits[recent] / _PENALTY, logits[recent] * _PENALTY)
            token = sampler.sample(self._context)
            if self.weights.is_end(token):
                return written, "stop"
            ids.append(token)
            piece = self.weights.pieces[token]
            probability = float(1 / np.exp(logits - logits[token]).sum()) if grammar else 1.0
            written.append(WrittenToken(len(piece), probability))
            emit(decoder.decode(piece))
            if grammar and grammar.matcher.consume_token(token) and grammar.matcher.is_stopped():
                return written, "stop"
            if ends_in_loop(ids[-_LOOP_WINDOW:]):
                return written, "length" if grammar else "stop"
            if len(ids) < limit:
                self._context.append([token])
        return written, "length"

    @cached_property
    def _mask(self) -> Mask:
        return Mask(self.weights)

    def _word_probabilities(self, options: tuple[str, ...]) -> dict[str, float]:
        if options not in self._word_tokens:
            self._word_tokens[options] = self._first_tokens(options)
        logits = self._context.logits.astype(np.float64)
        weights = np.exp(logits - logits.max())
        sums = [float(weights[self._word_tokens[options][option]].sum()) for option in options]
        return {option: weight / (sum(sums) or 1.0) for option, weight in zip(options, sums, strict=True)}

    def _first_tokens(self, options: tuple[str, ...]) -> dict[str, list[int]]:
        """Return, for each option, the tokens that can begin this option and no other option."""
        beginnings, endings = defaultdict[bytes, set[str]](set), defaultdict[bytes, set[str]](set)
        for option in options:
            ways = {option, option.capitalize()} if len(option) > 1 else {option}
            for text in (f"{space}{way}".encode() for way in ways for space in ("", " ")):
                for length in range(1, len(text) + 1):
                    beginnings[text[:length]].add(option)
                for after in _AFTER_WORD:
                    endings[text + after].add(option)
        lengths, tokens = {*map(len, endings)}, {option: list[int]() for option in options}
        for token, piece in enumerate(self.weights.pieces):
            fitting = {*beginnings.get(piece, ())}.union(*(endings.get(piece[:length], ()) for length in lengths))
            if len(fitting) == 1:
                tokens[fitting.pop()].append(token)
        return tokens

    @cached_property
    def _may_begin_call(self) -> npt.NDArray[np.bool_]:
        return np.array([begins_call(piece.decode("utf-8", "replace")) is not False for piece in self.weights.pieces])

    def _call_probability(self, request: Request) -> float:
        sure = unsure = 0.0
        first: int | None = None
        for token, share in self._likely_tokens():
            begins = begins_call(self._token_text(token))
            if begins is None:
                first = token if first is None else first
                unsure += share
            elif begins:
                sure += share
        if first is None or unsure < _NEGLIGIBLE or request.must_call or self._context.room <= _PEEKED_TOKENS:
            return sure
        length = self._context.length
        text = self._token_text(first)
        self._context.append([first])
        for _ in range(_PEEKED_TOKENS):
            if begins_call(text) is not None:
                break
            token, _ = self._likely_tokens()[0]
            text += self._token_text(token)
            self._context.append([token])
        self._context.cut(length)
        return sure + (unsure if begins_call(text) else 0.0)

    def _likely_tokens(self) -> list[tuple[int, float]]:
        logits = self._context.logits
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        return [(token, float(weights[token])) for token in np.argsort(-weights)[:_LIKELY].tolist()]

    def _token_text(self, token: int) -> str:
        return self.weights.pieces[token].decode("utf-8", "replace") or self.weights.control_text(token)


_running: weakref.WeakSet[threading.Event] = weakref.WeakSet()


def _cancel_all() -> None:
    for cancelled in list(_running):
        cancelled.set()


call_before_threads_end(_cancel_all)
