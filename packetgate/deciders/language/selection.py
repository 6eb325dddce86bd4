"""Select calls with a language model: it is offered tools and calls them, or it writes one JSON object."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from packetgate.deciders.language.evidence import evidence_from_tokens, likelier_selection, needs_call, select_if_sure
from packetgate.deciders.language.prompting import (
    ASK,
    SHOW,
    attached_pictures,
    conversation,
    correction_notes,
    fenced_results,
    is_slow,
    tool_offer,
    turn_messages,
)
from packetgate.deciders.language.selection_form import SelectionAnswer, selection_form, selection_system
from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.deciders.reflex.calls import select
from packetgate.deciders.reflex.fit import probability_of_tool
from packetgate.deciders.reflex.reading import parts_in
from packetgate.models.answers import streaming_asker
from packetgate.models.calling import CallAnswer, OfferedTool, WrittenCall
from packetgate.models.model import ChatCaller, Model
from packetgate.models.pictures import Picture
from packetgate.models.source import ModelSource, is_model_of
from packetgate.models.stripping import strip_markup
from packetgate.models.structured import structured_answer
from packetgate.models.thoughts import Thoughts, ask_with_room, cut_off_in_thought, ended_in_thought
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, ToolsRefusedError
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, shorten
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, checked_call
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.provenance.sources import SourceTexts, source_texts
from packetgate.tools.provenance.values import leaves
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.text.words import words_in, words_of

CALL_NEEDED = 0.5  # probability from which a model that answers in words is asked again, and must call
UNMEASURED = 0.5  # confidence without a measurement; it is not shown
SURE = 0.9  # probability from which an optional value that no source names is kept: it may be a synonym
_REASON_CHARS = 200


async def select_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    store: ResultStore | None = None,
    *,
    prime: ModelSource | None = None,
) -> Selection:
    """Ask the lite model, and correct it once. If the model is also `prime`, its text without a call is the answer."""
    model, pictures = await source(), await attached_pictures(packet, store)
    if model.calls_tools:
        # only the answer's stage knows which pictures the model did not see
        answers = not (pictures or packet.context.earlier_pictures) and await is_model_of(model, prime)
        try:
            return await select_natively(model, packet, catalogue, context, pictures, answers=answers)
        except ToolsRefusedError:
            pass  # it may still answer in JSON
    return await select_in_form(model, packet, catalogue, context, pictures)


async def select_natively(
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    pictures: Sequence[Picture] = (),
    *,
    answers: bool = False,
) -> Selection:
    """Return the selection of a model that is offered tools. A slow model is not asked if `reflex` is sure.

    Raise ToolsRefusedError if the server accepts no tools. With `answers`, text without a call is the turn's answer.
    """
    own = await asyncio.to_thread(select, packet, catalogue) if model.is_local else None
    if own and is_slow(model) and (sure := await asyncio.to_thread(select_if_sure, own, packet, catalogue)):
        return sure
    offer, max_tokens = await asyncio.to_thread(tool_offer, model, packet, catalogue), context.selection_max_tokens
    streams = answers and not model.is_local
    if streams:
        max_tokens = max(max_tokens, context.answer_max_tokens)
    note = correction_notes(packet)
    messages = await turn_messages(model, packet, catalogue, context, offer, max_tokens, pictures, note=note)
    sampling = model.sampling(temperature=context.selection_temperature, top_p=context.selection_top_p)
    asking = streaming_asker(packet.session_words) if streams else None
    selecting = ModelSelection(model, packet, catalogue, context, sampling | {"max_tokens": max_tokens}, asking=asking)
    chosen = await selecting.select(messages, offer.tools)
    if chosen.action == "none" and chosen.call_probability is not None and offer.specs:
        likely = await asyncio.to_thread(probability_of_tool, packet, catalogue)
        if needs_call(chosen.call_probability, likely) >= CALL_NEEDED:
            only = [tool for tool in offer.tools if offer.spec(tool.name)]
            chosen = await selecting.select(messages, only, must=True)
    if not answers:
        chosen = chosen.changed(text="")
    if own is None or chosen.call_probability is None:  # without a measurement the two cannot be compared
        return chosen
    return await asyncio.to_thread(likelier_selection, chosen, own, packet, catalogue)


async def select_in_form(
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    pictures: Sequence[Picture] = (),
) -> Selection:
    """Return the selection that the model writes as one JSON object."""
    selecting = ModelSelection(model, packet, catalogue, context, {})

    def objection(answer: SelectionAnswer) -> str | None:
        written = [WrittenCall(one.tool, one.params, written=one.written) for one in answer.selected_calls]
        return _listed(selecting.check(written)) or None

    shown = {one.tool_name: one.shown for one in packet.context.palette if one.tool_name in catalogue}
    tools = [catalogue[name] for name, how in shown.items() if how != "name"]
    user = render(
        "selection_user",
        request=packet.content.user_words,
        results=fenced_results(packet),
        corrections=correction_notes(packet),
    )
    systems = [selection_system(packet, catalogue, context, briefs=briefs) for briefs in (True, False)]
    max_tokens = context.selection_max_tokens
    answer = await structured_answer(
        model,
        await conversation(model, packet, systems, user, max_tokens, pictures=pictures),
        SelectionAnswer,
        selection_form(tools, context.max_parallel_calls, [*shown, *catalogue.groups]),
        temperature=context.selection_temperature,
        top_p=context.selection_top_p,
        max_tokens=max_tokens,
        validate=objection,
    )
    value, selecting.usage = answer.value, answer.usage
    measured = [answer.probability("calls", at, "tool") for at in range(len(value.selected_calls))]
    calls = tuple(
        SelectedCall(
            tool_name=call.tool,
            params=call.params,
            reasoning=call.reasoning or value.reasoning,
            confidence=probability,
            checked=checked,
        )
        for call, probability, checked in zip(value.selected_calls, measured, selecting.checked, strict=True)
    )
    return selecting.selection(
        action=value.action,
        calls=calls,
        tool_names=tuple(value.tools) if value.action == "describe" else (),
        question=value.question.strip() if value.action == "clarify" else "",
        complete=value.complete if calls else None,
        needs_tool=value.needs_tool if value.action == "none" else True,
        reasoning=value.reasoning,
        measured=measured or [answer.probability("action")],
    )


class ModelSelection:
    """One selection: the model's answers, corrections and tokens."""

    def __init__(
        self,
        model: Model,
        packet: CognitionPacket,
        catalogue: Catalogue,
        context: RoutingContext,
        sampling: Mapping[str, Any],
        *,
        asking: ChatCaller | None = None,
    ) -> None:
        """Store what to ask. With `asking`, an answer without a call is streamed."""
        self.usage = TokenUsage()
        self.call_probability: float | None = None  # probability of a call, in the first answer
        self.corrections: list[Correction] = []
        self.checked: list[CheckedCall] = []  # the calls of the last answer
        self._model, self._packet, self._catalogue = model, packet, catalogue
        self._most, self._sampling, self._asking = context.max_parallel_calls, dict(sampling), asking

    @cached_property
    def _sources(self) -> SourceTexts:
        return source_texts(self._packet)

    async def select(
        self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must: bool = False
    ) -> Selection:
        """Return the selection; ask the model once more if a call is invalid."""
        for _ in range(2):
            answer = await self._ask(messages, tools, must=must)
            self.call_probability = answer.call_probability if self.call_probability is None else self.call_probability
            if not answer.calls or answer.calls[0].name in (ASK, SHOW):
                return self._without_call(answer)
            written, problems = await asyncio.to_thread(self._read, answer)
            if not any(problems):
                return self._with_calls(answer, written)
            if answer.cut_off and any(call.unread for call in written):
                break
            messages = [*messages, *_corrected(written, problems)]
        problem = f"{self._model.label} made no valid call in two attempts: {_listed(problems)}"
        raise DecisionError(problem, self.usage)

    def _read(self, answer: CallAnswer) -> tuple[list[WrittenCall], list[list[Correction]]]:
        written = [
            without_needless_arguments(call, self._catalogue, self._sources)
            for call in answer.calls
            if call.name not in (ASK, SHOW)
        ]
        if answer.measured:  # small models write more calls than are asked for
            written = [*requested_calls(written, self._packet.content.user_words)]
        return written, self.check(written)

    def check(self, calls: Sequence[WrittenCall]) -> list[list[Correction]]:
        """Check calls, and return the problems of each. A tool off the palette is none: it widens the palette."""
        self.checked = [self._checked(call) for call in calls]
        problems = [
            [] if call.misses else list(call.problems or _placeholder_objections(call, self._catalogue, self._sources))
            for call in self.checked
        ]
        self.corrections += [problem for found in problems for problem in found]
        return problems

    async def _ask(self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must: bool) -> CallAnswer:
        model = self._model
        thoughts = Thoughts(0) if model.is_local else model.thoughts

        async def call(most: int) -> CallAnswer:
            sampling = self._sampling | {"max_tokens": most}
            return await model.call(messages, tools, most=self._most, sampling=sampling, must=must, asking=self._asking)

        answer = await ask_with_room(thoughts, self._sampling["max_tokens"], call)
        thoughts.learn(answer.usage.thought_tokens)
        self.usage += answer.usage
        if not model.is_local and ended_in_thought(answer.text, answer.usage, cut_off=answer.cut_off):
            raise cut_off_in_thought(model.label, thoughts, self.usage)
        text = answer.text.strip()
        if text and not answer.calls and not strip_markup(text, self._packet.content.user_words).text:
            return replace(answer, calls=(WrittenCall("", {}, unread=text),))  # only markup: an unreadable call
        return answer

    def _checked(self, call: WrittenCall) -> CheckedCall:
        name, palette = self._catalogue.exactly(call.name) or call.name, self._packet.context.palette_names
        if call.unread:
            of = f"of `{name}` " if name else ""
            message = f"The call {of}cannot be read: its arguments must be one JSON object."
            problem = Correction(tool_name=name, problem="invalid_value", message=message)
            return CheckedCall(name, {}, problems=(problem,))
        return checked_call(name, call.arguments, palette, self._catalogue, call.written)

    def _with_calls(self, answer: CallAnswer, written: Sequence[WrittenCall]) -> Selection:
        calls = tuple(
            SelectedCall(
                tool_name=call.tool_name,
                params=call.params,
                confidence=one.name_probability,
                checked=call,
                evidence=evidence_from_tokens(one, self.call_probability),
            )
            for one, call in zip(written, self.checked, strict=True)
        )
        return self.selection(
            action="call",
            calls=calls,
            complete=None if answer.measured else False,
            reasoning=shorten(strip_markup(answer.text).text, _REASON_CHARS),
            measured=[call.confidence for call in calls],
        )

    def _without_call(self, answer: CallAnswer) -> Selection:
        if answer.cut_off and not answer.calls and not answer.text:
            most = self._sampling["max_tokens"]
            problem = f"{self._model.label} began a call of more than {most} tokens: raise selection_max_tokens"
            raise DecisionError(problem, self.usage)
        own = answer.calls[0] if answer.calls else None
        question = str(own.arguments.get("question", "")).strip() if own and own.name == ASK else ""
        names = own.arguments.get("names", ()) if own and own.name == SHOW else ()
        words = None if self.call_probability is None else 1 - self.call_probability
        return self.selection(
            action="clarify" if question else "describe" if names else "none",
            question=question,
            tool_names=tuple(map(str, names)),
            needs_tool=own is not None,
            text="" if own or answer.cut_off else answer.text,
            message_id=answer.message_id,
            reasoning="" if own else "the model answered in words",
            measured=[own.name_probability if own else words],
        )

    def selection(self, *, measured: Sequence[float | None], **fields: Any) -> Selection:
        """Return a selection with the lowest of the measured probabilities, if all were measured."""
        known = [one for one in measured if one is not None]
        is_measured = len(known) == len(measured) > 0
        return Selection(
            **fields,
            corrections=tuple(self.corrections),
            confidence=min(known) if is_measured else UNMEASURED,
            confidence_source=ConfidenceSource.MEASURED if is_measured else ConfidenceSource.UNJUDGED,
            call_probability=self.call_probability,
            decided_by="model",
            usage=self.usage,
        )


def _listed(problems: Sequence[Sequence[Correction]]) -> str:
    return " ".join(problem.message for found in problems for problem in found)


def _corrected(calls: Sequence[WrittenCall], problems: Sequence[Sequence[Correction]]) -> list[BaseMessage]:
    texts = [" ".join(problem.message for problem in found) or "It was not made yet." for found in problems]
    if any(call.unread for call in calls):  # a chat template cannot show a broken call
        written = "\n".join(f"{call.name} {call.unread or compact_json(call.arguments)}" for call in calls)
        return [AIMessage(written), HumanMessage("\n".join(texts))]
    ids = [f"correct{at:02}" for at in range(len(calls))]
    made = [
        ToolCall(name=call.name, args=call.arguments, id=id_, type="tool_call")
        for call, id_ in zip(calls, ids, strict=True)
    ]
    answers = [ToolMessage(text, tool_call_id=id_) for text, id_ in zip(texts, ids, strict=True)]
    return [AIMessage("", tool_calls=made), *answers]


def without_needless_arguments(call: WrittenCall, catalogue: Catalogue, sources: SourceTexts) -> WrittenCall:
    """Return a call without optional defaults, and optional values that no source names if the model was unsure."""
    spec = catalogue.get(catalogue.exactly(call.name) or "")
    if spec is None:
        return call
    optional = {name: value for name, value in call.arguments.items() if name not in spec.required}
    needless = {name for name, value in optional.items() if _is_default(value, spec.parameters.get(name, {}))}
    unsure = {
        name: value
        for name, value in optional.items()
        if call.probabilities.get(name, 1.0) < SURE and name in spec.parameters and name not in needless
    }
    origins, words = origins_of(unsure, spec, sources), {*words_in(sources.user.folded)}
    for name, value in unsure.items():
        own = {word for leaf in leaves(value) for word in words_of(str(leaf.value))}
        if origins[name].kind is OriginKind.NOBODY and not (own and own <= words):  # such as `pet_friendly`
            needless.add(name)
    arguments = {name: value for name, value in call.arguments.items() if name not in needless}
    probabilities = {name: call.probabilities.get(name, 1.0) for name in arguments}
    return replace(call, arguments=arguments, probabilities=probabilities)


def _is_default(value: Any, schema: Mapping[str, Any]) -> bool:
    return "default" in schema and type(value) is type(schema["default"]) and value == schema["default"]


def requested_calls(calls: Sequence[WrittenCall], request: str) -> Iterator[WrittenCall]:
    """Yield as many calls as the request has parts, and others that use more of its words."""
    parts, words, used = len(parts_in(request)), request.casefold(), set[str]()
    for at, call in enumerate(calls):
        texts = {str(leaf.value).casefold() for name, value in call.arguments.items() for leaf in leaves(value, name)}
        if at < parts or any(text and text in words for text in texts - used):
            yield call
        used |= texts


def _placeholder_objections(call: CheckedCall, catalogue: Catalogue, evidence: SourceTexts) -> Iterator[Correction]:
    spec = catalogue[call.tool_name]
    origins = origins_of(call.params, spec, evidence)
    for name, value in call.params.items():
        repeats = isinstance(value, str) and words_of(value) == words_of(name)
        if repeats and origins[name].kind is OriginKind.NOBODY and "enum" not in spec.parameters.get(name, {}):
            message = (
                f"`{spec.name}` needs a value for `{name}`, not its name: take it from the request, or ask for it."
            )
            yield Correction(tool_name=spec.name, problem="placeholder", message=message)
