"""Select calls with a language model, which calls offered tools."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from packetgate.deciders.advice import LIKELY, NO_ADVISERS, Advisers
from packetgate.deciders.language.evidence import evidence_from_tokens, likelier_selection, needs_call
from packetgate.deciders.language.prompting import (
    ASK,
    SHOW,
    attached_pictures,
    correction_notes,
    tool_offer,
    turn_messages,
)
from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.gate.provenance.flagging import origins_of
from packetgate.gate.provenance.sources import SourceTexts
from packetgate.models.answers import streaming_caller
from packetgate.models.decoding import WrittenCall, calls_in, names_unread_call, unread_problem
from packetgate.models.model import ChatCaller, Model, ModelAnswer, OfferedTool
from packetgate.models.pool import ModelSource, is_model_of
from packetgate.models.stripping import removes_call, strip_markup
from packetgate.models.thoughts import Thoughts, ask_with_token_limit, cut_off_in_thought, ended_within_thought
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, shorten
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, repair_and_validate
from packetgate.tools.text.nearly_json import read_arguments
from packetgate.tools.text.reading import parts_in
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.text.values import leaves
from packetgate.tools.text.words import words_in, words_of

CALL_NEEDED = 0.5  # probability of a needed call, from which a model that made no call is asked again and must call
UNMEASURED = 0.5  # confidence without a measurement; it is not shown
SURE = 0.9  # probability from which an optional value that is in no source is kept: it may be a synonym
_REASON_CHARS = 200


async def select_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    store: ResultStore | None = None,
    *,
    prime: ModelSource | None = None,
    advisers: Advisers = NO_ADVISERS,
) -> Selection:
    """Return the lite model's selection, or a proposal that is likelier to be right; an invalid call is corrected once.

    If the model is also `prime`, its text without a call is the turn's answer.
    """
    model, pictures = await source(), await attached_pictures(packet, store)
    # with images, the answer is left to its own stage, which reports images that the model cannot read
    returned = model.accepts_images and any(one.kind == "image" for one in packet.routing.attachments)
    may_answer = not (pictures or packet.context.earlier_pictures or returned) and await is_model_of(model, prime)
    offer = await asyncio.to_thread(tool_offer, model, packet, catalogue, advisers)
    max_tokens = context.selection_max_tokens

    async def tool_probability() -> float | None:
        return await asyncio.to_thread(advisers.probability_of_tool, packet, catalogue)

    streams = may_answer and not model.is_local
    if streams and not (model.measures_streamed_calls or packet.routing.all_calls):
        # a streamed answer is shown early, and a measured call is judged better
        streams = (await tool_probability() or 0.0) < LIKELY
    if streams:
        max_tokens = max(max_tokens, context.answer_max_tokens)
    note = correction_notes(packet)
    messages = await turn_messages(model, packet, catalogue, context, offer, max_tokens, pictures, note=note)
    sampling = model.sampling(temperature=context.selection_temperature, top_p=context.selection_top_p)
    caller = streaming_caller(packet.session_words) if streams else None
    selector = ModelSelector(model, packet, catalogue, context, sampling | {"max_tokens": max_tokens}, caller=caller)
    chosen = await selector.select(messages, offer.tools)
    may_ask_again = chosen.action == "none" and bool(offer.specs) and not streams
    if may_ask_again and needs_call(chosen.call_probability, await tool_probability()) >= CALL_NEEDED:
        chosen = await selector.select(messages, offer.tools, must_call=True)
    chosen = chosen.changed(
        text=chosen.text if may_answer else "", offered_tools=tuple(spec.name for spec in offer.specs)
    )
    if chosen.call_probability is None or (streams and chosen.text):  # not comparable, or shown already
        return chosen
    proposal = await asyncio.to_thread(advisers.propose, packet, catalogue)
    if proposal is None:
        return chosen
    return await asyncio.to_thread(likelier_selection, chosen, proposal, packet, catalogue, advisers)


class ModelSelector:
    """Asks a model for one selection, and collects its corrections and token usage."""

    def __init__(
        self,
        model: Model,
        packet: CognitionPacket,
        catalogue: Catalogue,
        context: RoutingContext,
        sampling: Mapping[str, Any],
        *,
        caller: ChatCaller | None = None,
    ) -> None:
        """Create a selector.

        Args:
            caller: calls the chat model in place of a plain request, to stream an answer without a call.
        """
        self.usage = TokenUsage()
        self._is_first = not packet.routing.all_calls  # an empty first reply is requested again
        self.call_probability: float | None = None  # measured in the first answer
        self.corrections: list[Correction] = []
        self.checked: list[CheckedCall] = []  # the calls of the last answer
        self._model, self._packet, self._catalogue = model, packet, catalogue
        self._max_calls, self._sampling, self._caller = context.max_parallel_calls, dict(sampling), caller

    @cached_property
    def _sources(self) -> SourceTexts:
        return facts_of(self._packet, self._catalogue).sources

    async def select(
        self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must_call: bool = False
    ) -> Selection:
        """Return the selection. Ask the model again, once, if a call is invalid."""
        for _ in range(2):
            answer = await self._ask(messages, tools, must_call=must_call)
            self.call_probability = answer.call_probability if self.call_probability is None else self.call_probability
            if not answer.calls or answer.calls[0].name in (ASK, SHOW):
                return self._selection_without_call(answer)
            written, problems = await asyncio.to_thread(self._checked_calls, answer)
            if not any(problems):
                return self._selection_with_calls(answer, written)
            if answer.cut_off and any(call.invalid_arguments for call in written):
                break
            messages = [*messages, *_correction_messages(written, problems)]
        raise DecisionError(f"{self._model.label} made no valid call: {_messages_of(problems)}", self.usage)

    def _checked_calls(self, answer: ModelAnswer) -> tuple[list[WrittenCall], list[list[Correction]]]:
        written = [
            without_needless_arguments(call, self._catalogue, lambda: self._sources)
            for call in answer.calls
            if call.name not in (ASK, SHOW)
        ]
        if self._model.is_local:  # models in this process write more calls than the request asks for
            written = [*requested_calls(written, self._packet.content.user_words)]
        return written, self.check(written)

    def check(self, calls: Sequence[WrittenCall]) -> list[list[Correction]]:
        """Return the problems of each call. A tool off the palette is not a problem: it widens the palette later."""
        self.checked = [self._checked_call(call) for call in calls]
        problems = [
            [] if call.is_tool_miss else [*(call.problems or self._placeholders(call))] for call in self.checked
        ]
        self.corrections += [problem for call_problems in problems for problem in call_problems]
        return problems

    async def _ask(
        self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must_call: bool
    ) -> ModelAnswer:
        model = self._model
        thoughts = Thoughts(0) if model.is_local else model.thoughts

        async def call(max_tokens: int) -> ModelAnswer:
            sampling = self._sampling | {"max_tokens": max_tokens}
            return await model.call(
                messages, tools, max_calls=self._max_calls, sampling=sampling, must_call=must_call, caller=self._caller
            )

        answer = await ask_with_token_limit(thoughts, self._sampling["max_tokens"], call)
        self.usage += answer.usage
        if self._is_first and not (model.is_local or answer.text.strip() or answer.calls or answer.cut_off):
            answer = await ask_with_token_limit(thoughts, self._sampling["max_tokens"], call)
            self.usage += answer.usage
        self._is_first = False
        if not model.is_local and ended_within_thought(answer.text, answer.usage, cut_off=answer.cut_off):
            raise cut_off_in_thought(model.label, thoughts, self.usage)
        text, words = answer.text.strip(), self._packet.content.user_words
        if text and not answer.calls:
            is_broken = removes_call(text, words) and not calls_in(text)  # readable calls of other tools are text
            is_broken = is_broken or names_unread_call(text, [tool.name for tool in tools])
            if is_broken or not strip_markup(text, words).text:
                return replace(answer, calls=(WrittenCall("", {}, invalid_arguments=text),))
        return answer

    def _checked_call(self, call: WrittenCall) -> CheckedCall:
        name, palette = self._catalogue.exact_name(call.name) or call.name, self._packet.context.palette_names
        if call.invalid_arguments:
            of = f"of `{name}` " if name else ""
            message = f"The call {of}cannot be read: its arguments must be one JSON object. {_reason(call)}".rstrip()
            problem = Correction(tool_name=name, problem="invalid_value", message=message)
            return CheckedCall(name, {}, problems=(problem,))
        words = self._packet.session_words
        return repair_and_validate(name, call.arguments, palette, self._catalogue, call.written, words=words)

    def _placeholders(self, call: CheckedCall) -> list[Correction]:
        """Return an objection to each value that only repeats the name of its parameter, and is in no source."""
        spec = self._catalogue[call.tool_name]
        repeated = [
            name
            for name, value in call.params.items()
            if isinstance(value, str) and words_of(value) == words_of(name)
            if "enum" not in spec.parameters.get(name, {})
        ]
        origins = origins_of(call.params, spec, self._sources) if repeated else {}
        return [
            Correction(
                tool_name=spec.name,
                problem="placeholder",
                message=f"`{spec.name}` needs a value for `{name}`, not its name: take it from the request, or "
                "ask for it.",
            )
            for name in repeated
            if origins[name].kind is OriginKind.NOBODY
        ]

    def _selection_with_calls(self, answer: ModelAnswer, written: Sequence[WrittenCall]) -> Selection:
        calls = tuple(
            SelectedCall(
                tool_name=checked.tool_name,
                params=checked.params,
                confidence=call.name_probability,
                checked=checked,
                evidence=evidence_from_tokens(call, self.call_probability),
            )
            for call, checked in zip(written, self.checked, strict=True)
        )
        return self.selection(
            action="call",
            calls=calls,
            complete=False if answer.call_probability is None or self._model.measures_streamed_calls else None,
            reasoning=shorten(strip_markup(answer.text).text, _REASON_CHARS),
            measured=[call.confidence for call in calls],
        )

    def _selection_without_call(self, answer: ModelAnswer) -> Selection:
        if answer.cut_off and not answer.calls and not answer.text:
            max_tokens = self._sampling["max_tokens"]
            problem = f"{self._model.label} began a call of more than {max_tokens} tokens: raise selection_max_tokens"
            raise DecisionError(problem, self.usage)
        call = answer.calls[0] if answer.calls else None
        question = str(call.arguments.get("question", "")).strip() if call and call.name == ASK else ""
        names = call.arguments.get("names") or [] if call and call.name == SHOW else []
        no_call_probability = None if self.call_probability is None else 1 - self.call_probability
        return self.selection(
            action="clarify" if question else "describe" if names else "none",
            question=question,
            tool_names=tuple(map(str, names if isinstance(names, list) else [names])),
            needs_tool=call is not None,
            text="" if call or answer.cut_off else answer.text,
            message_id=answer.message_id,
            reasoning="" if call else "the model answered in words",
            measured=[call.name_probability if call else no_call_probability],
        )

    def selection(self, *, measured: Sequence[float | None], **fields: Any) -> Selection:
        """Return a selection whose confidence is the lowest measured probability; 0.5 if any was not measured."""
        probabilities = [probability for probability in measured if probability is not None]
        is_measured = len(probabilities) == len(measured) > 0
        return Selection(
            **fields,
            corrections=tuple(self.corrections),
            confidence=min(probabilities) if is_measured else UNMEASURED,
            confidence_source=ConfidenceSource.MEASURED if is_measured else ConfidenceSource.UNJUDGED,
            call_probability=self.call_probability,
            decided_by="model",
            usage=self.usage,
        )


def _reason(call: WrittenCall) -> str:
    """Return why a call cannot be parsed, and where; empty if that is not known."""
    problem = ""
    try:
        read_arguments(call.invalid_arguments)
    except ValueError as error:
        problem = str(error) if call.name else unread_problem(call.invalid_arguments)
    return f"The error: {problem}." if problem else ""


def _messages_of(problems: Sequence[Sequence[Correction]]) -> str:
    return " ".join(problem.message for call_problems in problems for problem in call_problems)


def _correction_messages(calls: Sequence[WrittenCall], problems: Sequence[Sequence[Correction]]) -> list[BaseMessage]:
    texts = [_messages_of([call_problems]) or "It was not made yet." for call_problems in problems]
    if any(call.invalid_arguments for call in calls):  # a chat template cannot represent a broken call
        written = "\n".join(f"{call.name} {call.invalid_arguments or compact_json(call.arguments)}" for call in calls)
        return [AIMessage(written), HumanMessage("\n".join(texts))]
    ids = [f"correct{at:02}" for at in range(len(calls))]
    tool_calls = [
        ToolCall(name=call.name, args=call.arguments, id=id_, type="tool_call")
        for call, id_ in zip(calls, ids, strict=True)
    ]
    answers = [ToolMessage(text, tool_call_id=id_) for text, id_ in zip(texts, ids, strict=True)]
    return [AIMessage("", tool_calls=tool_calls), *answers]


def without_needless_arguments(
    call: WrittenCall, catalogue: Catalogue, sources: Callable[[], SourceTexts]
) -> WrittenCall:
    """Return a call without needless optional arguments.

    Needless arguments are default values, and values that the model was unsure of and that no source contains.
    """
    spec = catalogue.get(catalogue.exact_name(call.name) or "")
    if spec is None:
        return call
    optional = {name: value for name, value in call.arguments.items() if name not in spec.required}
    schemas = {name: spec.parameters.get(name, {}) for name in optional}
    defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
    needless = {
        name for name, value in defaults.items() if type(value) is type(optional[name]) and value == optional[name]
    }
    unsure = {
        name: value
        for name, value in optional.items()
        if call.probabilities.get(name, 1.0) < SURE and name in spec.parameters and name not in needless
    }
    origins = origins_of(unsure, spec, sources()) if unsure else {}
    words = {*words_in(sources().user.folded)} if unsure else set()
    for name, value in unsure.items():
        value_words = {word for leaf in leaves(value) for word in words_of(str(leaf.value))}
        is_named = bool(value_words) and value_words <= words  # `pet_friendly` for "pet friendly"
        if origins[name].kind is OriginKind.NOBODY and not is_named:
            needless.add(name)
    arguments = {name: value for name, value in call.arguments.items() if name not in needless}
    probabilities = {name: call.probabilities.get(name, 1.0) for name in arguments}
    return replace(call, arguments=arguments, probabilities=probabilities)


def requested_calls(calls: Sequence[WrittenCall], request: str) -> Iterator[WrittenCall]:
    """Yield one call for each part of the request, and each further call with a new value from the request."""
    part_count, words, used = len(parts_in(request)), request.casefold(), set[str]()
    for index, call in enumerate(calls):
        texts = {str(leaf.value).casefold() for name, value in call.arguments.items() for leaf in leaves(value, name)}
        if index < part_count or any(text and text in words for text in texts - used):
            yield call
        used |= texts
