"""One loaded llama.cpp model and its worker thread."""

import codecs
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import perf_counter
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from packetgate.models.calling import Timing
from packetgate.models.choices import ChoiceMeter, MeasuredChoice, continues
from packetgate.models.decoding import begins_call
from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.grammar import CallForm, Grammar, Grammars
from packetgate.models.llama.prompt import Chat, PromptWriter, Tools
from packetgate.models.llama.sampling import Logits, Mask, Sampler, TokenTexts, ends_in_loop, logits_of, lower_repeated
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.model import LocalModelInfo
from packetgate.models.schemas import AnswerForm
from packetgate.state.errors import DecisionError
from packetgate.state.private_names import call_before_threads_end

FinishReason = Literal["stop", "length", "cancelled", "words"]
"""`words`: the answer is no call, and ended at its first token."""


@dataclass(frozen=True)
class Request:
    """Messages, form and sampling of one request to the engine."""

    chat: Chat
    sampling: Mapping[str, Any]
    """`max_tokens` and `temperature`; `top_p` and `seed` may be given.

    `enable_thinking` switches the template's thoughts; by default, the model thinks unless the answer has a form.
    In a form, a thought ends after `thinking_budget` tokens, which do not count towards the answer's.
    """
    form: AnswerForm | CallForm | None = None
    """The form that the answer, but not the thought before it, must have. Calls must have it once they have begun."""
    must_call: bool = False
    options: tuple[str, ...] = ()
    """If given, nothing is written, but the probability of each word as the beginning of the answer is measured."""
    words_only: bool = False
    tools: Tools = ()
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Event that stops the request at the next token, or at the next batch of the prompt."""
    on_text: Callable[[str], None] = lambda _: None
    """Receives the answer's pieces on the worker's thread."""


_LIKELY, _NEGLIGIBLE = 64, 0.05
"""First tokens that are examined, and the share of undecided tokens that can be ignored."""
_LOOP_WINDOW = 160
"""Number of last tokens that are searched for a loop."""
_MEASURABLE_PROMPT = 100
"""Shortest prompt, in tokens, that the speed is measured with."""
_PEEKED_TOKENS = 8
_CALL_PROBABILITY = 0.5
"""From this probability of a call on, the answer is a call."""


class WrittenToken(NamedTuple):
    """A token of an answer with its text and probability."""

    size: int
    """Size in bytes."""
    probability: float
    """Probability among the tokens that the form allows."""


@dataclass(frozen=True)
class EngineAnswer:
    """The text, tokens and measurements of a finished request."""

    text: str
    finish_reason: FinishReason
    input_tokens: int
    cached_tokens: int
    """Input tokens that were evaluated for an earlier prompt."""
    output_tokens: int
    timing: Timing
    choices: tuple[MeasuredChoice, ...] = ()
    widened: tuple[str, ...] = ()
    """Parts of the form that no grammar can enforce."""
    thought_tokens: int = 0
    """Output tokens of a thought before a form."""
    tokens: tuple[WrittenToken, ...] = ()
    """The tokens of calls."""
    acts: float | None = None
    """Probability that the answer begins with a call; None: no tools were offered."""


class LlamaEngine:
    """A loaded model. One worker thread answers the requests of all event loops in order."""

    def __init__(self, path: str, options: Mapping[str, int] | None = None) -> None:
        """Load the model; blocks for seconds.

        Raises:
            ModelError: llama-cpp-python is not installed, or the file cannot be loaded.
        """
        options = options or {}
        self.weights = LlamaWeights(path, options)
        self.name = self.weights.name
        self._seed = options.get("seed")
        self._context = LlamaContext(self.weights, options)
        self.prompts = PromptWriter(self.weights)
        self._grammars = Grammars(self.weights)
        self._texts = TokenTexts(self.weights)
        self.local_info = LocalModelInfo(
            self.weights.description,
            self._context.size,
            self.weights.trained_context,
            own_template=self.weights.template is not None,
        )
        self.reading_speed: float | None = None
        """Prompt tokens per second, as measured on the first long prompt; None: there was none yet."""
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"llamacpp-{self.name}")

    @cached_property
    def _mask(self) -> Mask:
        return Mask(self.weights)

    def submit(self, request: Request) -> Future[EngineAnswer]:
        """Queue a request for the worker thread."""
        _running.add(request.cancelled)
        return self._worker.submit(self._answer, request)

    def _answer(self, request: Request) -> EngineAnswer:
        thinking = request.sampling.get("enable_thinking", request.form is None)
        thinks_first = bool(thinking and request.form)
        prompt = self.prompts.write(request.chat, request.tools, thinking=thinking, opened=thinks_first)
        grammar = self._grammars.grammar(request.form) if request.form else None
        begun = perf_counter()
        known = self._context.read(prompt.tokens, request.cancelled)
        read = perf_counter()
        if (
            self.reading_speed is None
            and len(prompt.tokens) - known >= _MEASURABLE_PROMPT
            and not request.cancelled.is_set()
        ):
            self.reading_speed = (len(prompt.tokens) - known) / (read - begun)
        written = _Written(request)
        if prompt.thought and request.form is None:
            written.emit(prompt.thought.begin)  # readers of the answer need the begin mark to match the end mark
        reason: FinishReason = "length"
        seed = request.sampling.get("seed")
        sampler = Sampler(request.sampling, self._seed if seed is None else seed)
        thought = self._think(prompt.thought.end, request, sampler) if thinks_first and prompt.thought else 0
        limit = min(request.sampling["max_tokens"], self._context.room)
        acts: float | None = None
        if request.options:
            written.meter.measured += self._word_probabilities(request.options)
            limit = 0
        if isinstance(request.form, CallForm):
            acts = self._call_probability(request)
            reason, limit = ("words", 0) if acts < _CALL_PROBABILITY and not request.must_call else (reason, limit)
        if request.words_only and not prompt.thought:
            logits_of(self._context, self.weights)[self._no_words] = -np.inf
        token_ids: list[int] = []
        while written.tokens < limit:
            if request.cancelled.is_set():
                reason = "cancelled"
                break
            if grammar is None and request.sampling["temperature"] > 0:
                lower_repeated(logits_of(self._context, self.weights), token_ids)
            tokens, ended = self._next(sampler, grammar, written, limit)
            token_ids += tokens
            looped = ends_in_loop(token_ids[-_LOOP_WINDOW:])
            if ended or looped:
                reason = "length" if looped and grammar and not ended else "stop"
                break
            if written.tokens < limit:
                self._context.append(tokens)
        if grammar and grammar.matcher.is_error():
            raise DecisionError(f"{self.name} does not support this output schema: {grammar.matcher.get_error()}")
        return EngineAnswer(
            text=written.text,
            finish_reason=reason,
            input_tokens=len(prompt.tokens),
            cached_tokens=known,
            output_tokens=thought + written.tokens,
            thought_tokens=thought,
            timing=Timing(reading_s=read - begun, writing_s=perf_counter() - read),
            choices=tuple(written.meter.measured),
            widened=grammar.widened if grammar else (),
            tokens=tuple(written.each),
            acts=acts,
        )

    def _word_probabilities(self, options: Sequence[str]) -> list[MeasuredChoice]:
        spellings = {
            option: [text.encode() for one in (option, option.capitalize()) for text in (one, f" {one}")]
            for option in options
        }
        weights = self._texts.weigh(
            [text for ways in spellings.values() for text in ways], logits_of(self._context, self.weights)
        )
        sums = dict.fromkeys(options, 0.0)
        for piece, weight in weights.items():
            matching = [option for option, ways in spellings.items() if any(continues(piece, way) for way in ways)]
            if len(matching) == 1:
                sums[matching[0]] += weight
        total = sum(sums.values()) or 1.0
        return [MeasuredChoice((), option, found / total) for option, found in sums.items()]

    @cached_property
    def _no_words(self) -> npt.NDArray[np.bool_]:
        return np.array([begins_call(piece.decode("utf-8", "replace")) is not False for piece in self.weights.pieces])

    def _call_probability(self, request: Request) -> float:
        sure = unsure = 0.0
        first: int | None = None
        for token, share in self._likely():
            begins = begins_call(self._text(token))
            if begins is None:
                first = token if first is None else first
                unsure += share
            elif begins:
                sure += share
        if first is None or unsure < _NEGLIGIBLE or request.must_call or self._context.room <= _PEEKED_TOKENS:
            return sure
        length = self._context.length
        text = self._text(first)
        self._context.append([first])
        for _ in range(_PEEKED_TOKENS):
            if begins_call(text) is not None:
                break
            token, _ = self._likely()[0]
            text += self._text(token)
            self._context.append([token])
        self._context.cut(length)
        return sure + (unsure if begins_call(text) else 0.0)

    def _likely(self) -> list[tuple[int, float]]:
        logits = logits_of(self._context, self.weights)
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        return [(token, float(weights[token])) for token in np.argsort(-weights)[:_LIKELY].tolist()]

    def _text(self, token: int) -> str:
        return self.weights.pieces[token].decode("utf-8", "replace") or self.weights.control_text(token)

    def _think(self, end: str, request: Request, sampler: Sampler) -> int:
        closing, mark = (self.weights.tokenize(text, special=True) for text in (f"\n{end}\n\n", end))
        budget = request.sampling.get("thinking_budget", 0)
        most = min(budget, self._context.room - request.sampling["max_tokens"] - len(closing))
        written, taken = b"", 0
        while taken < most and not request.cancelled.is_set():
            token = sampler.sample(self._context)
            if self.weights.is_end(token):
                break
            self._context.append([token])
            written, taken = written[-len(end) * 4 :] + self.weights.pieces[token], taken + 1
            if [token] == mark or end.encode() in written:
                return taken
        if self._context.room > len(closing):
            self._context.append(closing)
        return max(taken, 0)

    def _next(
        self, sampler: Sampler, grammar: Grammar | None, written: "_Written", limit: int
    ) -> tuple[list[int], bool]:
        logits = logits_of(self._context, self.weights)
        if grammar:
            self._mask.hold(grammar.matcher, logits)
        token = sampler.sample(self._context)
        if self.weights.is_end(token):
            return [], True
        probability = _probability(token, logits) if isinstance(written.form, CallForm) else 1.0
        written.add(self.weights.pieces[token], partial(self._texts.weigh, logits=logits), probability)
        if grammar is None:
            return [token], False
        matcher = grammar.matcher
        matcher.consume_token(token)
        if isinstance(written.form, CallForm):  # forced tokens are not always those that the model would write
            return [token], matcher.is_stopped()
        forced = matcher.compute_ff_tokens()[: limit - written.tokens]
        for one in forced:
            matcher.consume_token(one)
            written.add(self.weights.pieces[one], None)
        return [token, *forced], matcher.is_stopped()


class _Written:
    def __init__(self, request: Request) -> None:
        self.tokens = 0
        self.form = request.form
        self.each: list[WrittenToken] = []
        self.meter = ChoiceMeter(request.form.choices if isinstance(request.form, AnswerForm) else ())
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._on_text = request.on_text
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, piece: bytes, weights: Any, probability: float = 1.0) -> None:
        self.tokens += 1
        if isinstance(self.form, CallForm):
            self.each.append(WrittenToken(len(piece), probability))
        self.meter.feed(piece, weights)
        self.emit(self._decoder.decode(piece))

    def emit(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._on_text(text)


def _probability(token: int, logits: Logits) -> float:
    return float(1 / np.exp(logits - logits[token]).sum())


_running: WeakSet[threading.Event] = WeakSet()


def _cancel_all() -> None:
    for cancelled in list(_running):
        cancelled.set()


call_before_threads_end(_cancel_all)
