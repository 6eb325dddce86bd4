"""Select calls in a model's native tool-calling form: it is offered tools, and calls them or answers in words."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from packetgate.deciders.language.evidence import (
    likelier_selection,
    needs_call,
    probability_of_tool,
    select_if_sure,
    token_evidence,
)
from packetgate.deciders.language.offer import ASK, SHOW, is_slow, offer_of, turn_messages
from packetgate.deciders.language.prompting import corrections_of
from packetgate.deciders.protocols import Selection, WantedCall
from packetgate.deciders.reflex.reading import parts_in
from packetgate.deciders.reflex.selection import select
from packetgate.models.answers import streaming_asker
from packetgate.models.calling import CallAnswer, OfferedTool, WrittenCall
from packetgate.models.model import ChatCaller, Model
from packetgate.models.pictures import Picture
from packetgate.models.stripping import strip_markup
from packetgate.models.thoughts import Thoughts, ask_with_room, cut_off_in_thought, ended_in_thought
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, shorten
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, checked_call
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.provenance.sources import SourceTexts, source_texts
from packetgate.tools.provenance.values import leaves
from packetgate.tools.text.words import words_in, words_of

CALL_NEEDED = 0.5  # probability from which a model that answers in words is asked again, and must call
UNMEASURED = 0.5  # confidence without a measurement; it is not shown
SURE = 0.9  # probability from which an optional value that no source names is kept: it may be a synonym
_REASON_CHARS = 200


async def select_natively(
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    pictures: Sequence[Picture] = (),
    *,
    answers: bool = False,
) -> Selection:
    """Return the model's selection; correct the model once. A slow model is not asked if `reflex` is sure of a call.

    Args:
        answers: Whether text without a call is the turn's answer.

    Raises:
        ToolsRefusedError: The server accepts no tools, or not these.
        DecisionError: The model gave no usable answer, or repeated an invalid call.
    """
    own = await asyncio.to_thread(select, packet, catalogue) if model.local_info else None
    if own and is_slow(model) and (sure := await asyncio.to_thread(select_if_sure, own, packet, catalogue)):
        return sure
    offer, max_tokens = await asyncio.to_thread(offer_of, model, packet, catalogue), context.selection_max_tokens
    streams = answers and not model.local_info
    if streams:
        max_tokens = max(max_tokens, context.answer_max_tokens)
    note = corrections_of(packet)
    messages = await turn_messages(model, packet, catalogue, context, offer, max_tokens, pictures, note=note)
    sampling = model.sampling(temperature=context.selection_temperature, top_p=context.selection_top_p)
    asking = streaming_asker(packet.session_words) if streams else None
    native = NativeSelection(model, packet, catalogue, context, sampling | {"max_tokens": max_tokens}, asking=asking)
    chosen = await native.select(messages, offer.tools)
    if chosen.action == "none" and chosen.acts is not None and offer.specs:
        likely = await asyncio.to_thread(probability_of_tool, packet, catalogue)
        if needs_call(chosen.acts, likely) >= CALL_NEEDED:
            only = [tool for tool in offer.tools if offer.spec(tool.name)]
            chosen = await native.select(messages, only, must=True)
    if not answers:
        chosen = chosen.changed(text="")
    if own is None or chosen.acts is None:  # without a measurement the two cannot be compared
        return chosen
    return await asyncio.to_thread(likelier_selection, chosen, own, packet, catalogue)


class NativeSelection:
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
        self.acts: float | None = None
        """Probability of a call, in the first answer."""
        self.corrections: list[Correction] = []
        self._model, self._packet, self._catalogue = model, packet, catalogue
        self._most, self._sampling, self._asking = context.max_parallel_calls, dict(sampling), asking

    async def select(
        self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must: bool = False
    ) -> Selection:
        """Return the selection; ask the model once more if a call is invalid.

        Raises:
            DecisionError: The model gave no usable answer, or repeated an invalid call.
        """
        evidence = await asyncio.to_thread(source_texts, self._packet)
        for _ in range(2):
            answer = await self._ask(messages, tools, must=must)
            self.acts = answer.acts if self.acts is None else self.acts
            if not answer.calls or answer.calls[0].name in (ASK, SHOW):
                return self._without_call(answer)
            written = [
                without_invented_arguments(without_default_values(call, self._catalogue), self._catalogue, evidence)
                for call in answer.calls
                if call.name not in (ASK, SHOW)
            ]
            if answer.measured:  # small models write more calls than are asked for
                written = [*requested_calls(written, self._packet.content.user_words)]
            checked = [self._checked(call) for call in written]
            problems = [  # a tool off the palette is not corrected here: it widens the palette
                [] if call.misses else list(call.problems or placeholder_objections(call, self._catalogue, evidence))
                for call in checked
            ]
            if not any(problems):
                return self._call(answer, written, checked)
            self.corrections += [problem for found in problems for problem in found]
            if answer.cut_off and any(call.unread for call in written):
                break
            messages = [*messages, *_corrected(written, problems)]
        listed = " ".join(problem.message for found in problems for problem in found)
        raise DecisionError(f"{self._model.label} made no valid call in two attempts: {listed}", self.usage)

    async def _ask(self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must: bool) -> CallAnswer:
        model = self._model
        thoughts = model.thoughts if model.thinks_in_forms else Thoughts(0)

        async def call(most: int) -> CallAnswer:
            sampling = self._sampling | {"max_tokens": most}
            return await model.call(messages, tools, most=self._most, sampling=sampling, must=must, asking=self._asking)

        answer, usage = await ask_with_room(thoughts, self._sampling["max_tokens"], call)
        self.usage += usage
        if model.thinks_in_forms and ended_in_thought(answer):
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

    def _call(self, answer: CallAnswer, written: Sequence[WrittenCall], checked: Sequence[CheckedCall]) -> Selection:
        calls = tuple(
            WantedCall(
                tool_name=call.tool_name,
                params=call.params,
                confidence=one.name_probability,
                checked=call,
                evidence=token_evidence(one, self.acts),
            )
            for one, call in zip(written, checked, strict=True)
        )
        measured = [call.confidence for call in calls if call.confidence is not None]
        return self._selection(
            action="call",
            calls=calls,
            complete=None if answer.measured else False,
            reasoning=shorten(strip_markup(answer.text).text, _REASON_CHARS),
            only_validated=tuple(call.tool_name for call in calls if call.tool_name in answer.widened),
            probability=min(measured) if len(measured) == len(calls) else None,
        )

    def _without_call(self, answer: CallAnswer) -> Selection:
        """Return the selection for an answer without a call: words, a question, or a request for tools."""
        if answer.cut_off and not answer.calls and not answer.text:
            most = self._sampling["max_tokens"]
            problem = f"{self._model.label} began a call of more than {most} tokens: raise selection_max_tokens"
            raise DecisionError(problem, self.usage)
        own = answer.calls[0] if answer.calls else None
        question = str(own.arguments.get("question", "")).strip() if own and own.name == ASK else ""
        names = own.arguments.get("names", ()) if own and own.name == SHOW else ()
        words = None if self.acts is None else 1 - self.acts
        return self._selection(
            action="clarify" if question else "describe" if names else "none",
            question=question,
            tool_names=tuple(map(str, names)),
            needs_tool=own is not None,
            text="" if own or answer.cut_off else answer.text,
            message_id=answer.message_id,
            reasoning="" if own else "the model answered in words",
            probability=own.name_probability if own else words,
        )

    def _selection(self, *, probability: float | None, **fields: Any) -> Selection:
        return Selection(
            **fields,
            corrections=tuple(self.corrections),
            confidence=UNMEASURED if probability is None else probability,
            confidence_source=ConfidenceSource.UNJUDGED if probability is None else ConfidenceSource.MEASURED,
            acts=self.acts,
            decided_by="model",
            usage=self.usage,
        )


def _corrected(calls: Sequence[WrittenCall], problems: Sequence[Sequence[Correction]]) -> list[BaseMessage]:
    """Return the model's calls, each with its problems."""
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


def without_default_values(call: WrittenCall, catalogue: Catalogue) -> WrittenCall:
    """Return a call without optional arguments that equal their default: small models write them all."""
    spec = catalogue.get(catalogue.exactly(call.name) or "")
    if spec is None:
        return call
    optional = call.arguments.keys() - spec.required
    return _without(
        call, {name for name in optional if _is_default(call.arguments[name], spec.parameters.get(name, {}))}
    )


def _is_default(value: Any, schema: Mapping[str, Any]) -> bool:
    return "default" in schema and type(value) is type(schema["default"]) and value == schema["default"]


def without_invented_arguments(call: WrittenCall, catalogue: Catalogue, evidence: SourceTexts) -> WrittenCall:
    """Return a call without optional arguments that no source names and about which the model was unsure. Blocking."""
    spec = catalogue.get(catalogue.exactly(call.name) or "")
    if spec is None:
        return call
    unsure = {
        name: call.arguments[name]
        for name, probability in call.probabilities.items()
        if probability < SURE and name in spec.parameters and name not in spec.required
    }
    origins, words = origins_of(unsure, spec, evidence), {*words_in(evidence.user.folded)}
    nobody = {name for name in unsure if origins[name].kind is OriginKind.NOBODY}
    return _without(call, {name for name in nobody if not _is_in(unsure[name], words)})


def _is_in(value: Any, words: Set[str]) -> bool:
    """Return whether `words` contain all words of a value such as `pet_friendly`."""
    own = {word for leaf in leaves(value) for word in words_of(str(leaf.value))}
    return bool(own) and own <= words


def _without(call: WrittenCall, names: Set[str]) -> WrittenCall:
    arguments = {name: value for name, value in call.arguments.items() if name not in names}
    return replace(
        call, arguments=arguments, probabilities={name: call.probabilities.get(name, 1.0) for name in arguments}
    )


def requested_calls(calls: Sequence[WrittenCall], request: str) -> Iterator[WrittenCall]:
    """Yield as many calls as the request has parts, and others that use more of its words."""
    parts, words, used = len(parts_in(request)), request.casefold(), set[str]()
    for at, call in enumerate(calls):
        texts = {str(leaf.value).casefold() for name, value in call.arguments.items() for leaf in leaves(value, name)}
        if at < parts or any(text and text in words for text in texts - used):
            yield call
        used |= texts


def placeholder_objections(call: CheckedCall, catalogue: Catalogue, evidence: SourceTexts) -> Iterator[Correction]:
    """Yield an objection to each text that only repeats its parameter's name."""
    spec = catalogue[call.tool_name]
    origins = origins_of(call.params, spec, evidence)
    for name, value in call.params.items():
        repeats = isinstance(value, str) and words_of(value) == words_of(name)
        if repeats and origins[name].kind is OriginKind.NOBODY and "enum" not in spec.parameters.get(name, {}):
            message = (
                f"`{spec.name}` needs a value for `{name}`, not its name: take it from the request, or ask for it."
            )
            yield Correction(tool_name=spec.name, problem="placeholder", message=message)
