"""Tool selection in a model's own language: it is offered tools, and calls them or answers in words."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from packetgate.deciders.language.copying import held_by, unfilled, without_defaults, without_invented
from packetgate.deciders.language.evidence import serves, takes_call, written_evidence
from packetgate.deciders.language.prompting import corrections_of
from packetgate.deciders.language.turn import ASK, SHOW, is_slow, offer_of, turn_messages
from packetgate.deciders.language.weighing import likelier, sure_already
from packetgate.deciders.protocols import Selection, WantedCall
from packetgate.deciders.reflex.selection import select
from packetgate.models.calling import CallAnswer, OfferedTool, WrittenCall
from packetgate.models.markup.stripping import strip_markup
from packetgate.models.model import Asking, Model
from packetgate.models.pictures import Picture
from packetgate.models.streaming import streaming_asker
from packetgate.models.thoughts import Thoughts, cut_off_in_thought, ended_in_thought, with_room
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json, shorten
from packetgate.state.routing import Correction
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import CheckedCall, checked_call
from packetgate.tools.provenance.evidence import evidence_of

ENOUGH = 0.5
"""Probability that a request takes a call from which a model that would answer in words is held to one."""
REASON_CHARS = 200
"""Of what a model says beside its calls."""
UNMEASURED = 0.5
"""Stands where no probability could be had; it is not shown."""


async def select_in_own_language(
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    pictures: Sequence[Picture] = (),
    *,
    answers: bool = False,
) -> Selection:
    """Ask the model, and correct it once. A slow one is not asked for a call that is sure without it.

    Args:
        answers: whether what it says without a call is the turn's answer, and may be as long as one.

    Raises:
        ToolsRefusedError: its server takes no tools, or not these.
        DecisionError: the model gave no usable answer, or insisted on a call that its tool does not take.
    """
    own = await asyncio.to_thread(select, packet, catalogue) if model.local_info else None
    if own and is_slow(model) and (already := await asyncio.to_thread(sure_already, own, packet, catalogue)):
        return already
    offer, max_tokens = await asyncio.to_thread(offer_of, model, packet, catalogue), context.selection_max_tokens
    if answers and not model.local_info:
        max_tokens = max(max_tokens, context.answer_max_tokens)
    note = corrections_of(packet)
    messages = await turn_messages(model, packet, catalogue, context, offer, max_tokens, pictures, note=note)
    sampling = model.sampling(temperature=context.selection_temperature, top_p=context.selection_top_p)
    asking = streaming_asker(model.thoughts, packet.spoken) if answers and not model.local_info else None
    asked = Asked(model, packet, catalogue, context, sampling | {"max_tokens": max_tokens}, asking=asking)
    chosen = await asked.select(messages, offer.tools)
    if chosen.action == "none" and chosen.acts is not None and offer.specs:
        likely = await asyncio.to_thread(serves, packet, catalogue)
        if takes_call(chosen.acts, likely) >= ENOUGH:
            only = [one for one in offer.tools if offer.spec(one.name)]
            chosen = await asked.select(messages, only, must=True)
    if not answers:
        chosen = chosen.without_text()
    # weighed against the reflexes is only a model of which it is known how sure it is
    if own is None or chosen.acts is None:
        return chosen
    return await asyncio.to_thread(likelier, chosen, own, packet, catalogue)


class Asked:
    """What a model is asked in one selection, and what came of it."""

    def __init__(
        self,
        model: Model,
        packet: CognitionPacket,
        catalogue: Catalogue,
        context: RoutingContext,
        sampling: Mapping[str, Any],
        *,
        asking: Asking | None = None,
    ) -> None:
        """Take what to ask; `asking`, where what the model says without a call is shown as it comes."""
        self.spent = TokenUsage()
        self.acts: float | None = None
        """Probability that it calls, as it was asked first."""
        self.corrections: list[Correction] = []
        self._model, self._packet, self._catalogue = model, packet, catalogue
        self._most, self._sampling, self._asking = context.max_parallel_calls, dict(sampling), asking

    async def select(
        self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must: bool = False
    ) -> Selection:
        """Ask, and once more where a call cannot be made as it was written.

        Raises:
            DecisionError: the model gave no usable answer, or insisted on a call that its tool does not take.
        """
        evidence = await asyncio.to_thread(evidence_of, self._packet)
        for _ in range(2):
            answer = await self._ask(messages, tools, must=must)
            self.acts = answer.acts if self.acts is None else self.acts
            if not answer.calls or answer.calls[0].name in (ASK, SHOW):
                return self._without_call(answer)
            written = [
                without_invented(without_defaults(one, self._catalogue), self._catalogue, evidence)
                for one in answer.calls
                if one.name not in (ASK, SHOW)
            ]
            if answer.measured:  # a small model's; of others it is not known that they write more than is asked
                written = [*held_by(written, self._packet.content.user_words)]
            checked = [self._checked(one) for one in written]
            found = [
                # a tool that is not on the palette is not the model's to correct: it widens the palette
                [] if one.misses else list(one.problems or unfilled(one, self._catalogue, evidence))
                for one in checked
            ]
            if not any(found):
                return self._call(answer, written, checked)
            self.corrections += [problem for problems in found for problem in problems]
            if answer.cut_off and any(one.unread for one in written):
                break
            messages = [*messages, *_corrected(written, found)]
        told = " ".join(one.message for problems in found for one in problems)
        raise DecisionError(
            f"{self._model.label} was asked twice for a call, and made none that can run: {told}", self.spent
        )

    async def _ask(self, messages: Sequence[BaseMessage], tools: Sequence[OfferedTool], *, must: bool) -> CallAnswer:
        """Ask once, with room for thoughts beside the answer.

        Raises:
            DecisionError: the model cannot be asked, or thought until it was cut off.
        """
        model = self._model
        thoughts = model.thoughts if model.thinks_in_forms else Thoughts(0)

        async def call(most: int) -> CallAnswer:
            given: dict[str, Any] = {"sampling": self._sampling | {"max_tokens": most}, "asking": self._asking}
            return await model.ask_with_pictures(
                messages, lambda shown: model.call(shown, tools, most=self._most, must=must, **given)
            )

        answer, spent = await with_room(thoughts, self._sampling["max_tokens"], call)
        self.spent += spent
        if model.thinks_in_forms and ended_in_thought(answer):
            raise cut_off_in_thought(model.label, thoughts, self.spent)
        said = answer.text.strip()
        if said and not answer.calls and not strip_markup(said, self._packet.content.user_words).text:
            return replace(answer, calls=(WrittenCall("", {}, unread=said),))  # a call that nothing can read
        return answer

    def _checked(self, call: WrittenCall) -> CheckedCall:
        name, palette = self._catalogue.exactly(call.name) or call.name, self._packet.context.palette_names
        if call.unread:
            told = f"The call {name and f'of `{name}` '}cannot be read: its arguments must be one JSON object."
            return CheckedCall(name, {}, problems=(Correction(tool_name=name, problem="invalid_value", message=told),))
        return checked_call(name, call.arguments, palette, self._catalogue, call.written)

    def _call(self, answer: CallAnswer, written: Sequence[WrittenCall], checked: Sequence[CheckedCall]) -> Selection:
        calls = tuple(
            WantedCall(
                tool_name=call.tool_name,
                params=call.params,
                confidence=one.name_probability,
                checked=call,
                evidence=written_evidence(one, self.acts),
            )
            for one, call in zip(written, checked, strict=True)
        )
        measured = [one.name_probability for one in written if one.name_probability is not None]
        known = len(measured) == len(written)
        return Selection(
            action="call",
            calls=calls,
            complete=None if answer.measured else False,
            corrections=tuple(self.corrections),
            reasoning=shorten(strip_markup(answer.text).text, REASON_CHARS),
            confidence=min(measured) if known else UNMEASURED,
            confidence_source=ConfidenceSource.MEASURED if known else ConfidenceSource.UNJUDGED,
            acts=self.acts,
            only_validated=tuple(one.tool_name for one in calls if one.tool_name in answer.widened),
            decided_by="model",
            usage=self.spent,
        )

    def _without_call(self, answer: CallAnswer) -> Selection:
        """Return what the model wants instead of a call: an answer in words, to be told more tools, or to ask.

        Raises:
            DecisionError: it began a call, and did not end it.
        """
        if answer.cut_off and not answer.calls and not answer.text:
            most = self._sampling["max_tokens"]
            told = f"{self._model.label} began a call that is longer than {most} tokens: see selection_max_tokens"
            raise DecisionError(told, self.spent)
        own = answer.calls[0] if answer.calls else None
        question = str(own.arguments.get("question", "")).strip() if own and own.name == ASK else ""
        names = own.arguments.get("names", ()) if own and own.name == SHOW else ()
        words = None if self.acts is None else 1 - self.acts
        measured = own.name_probability if own else words
        return Selection(
            action="clarify" if question else "describe" if names else "none",
            question=question,
            tool_names=tuple(map(str, names)),
            needs_tool=own is not None,
            text="" if own or answer.cut_off else answer.text,
            message_id=answer.message_id,
            corrections=tuple(self.corrections),
            confidence=UNMEASURED if measured is None else measured,
            confidence_source=ConfidenceSource.UNJUDGED if measured is None else ConfidenceSource.MEASURED,
            reasoning="" if own else "it answers in words",
            acts=self.acts,
            decided_by="model",
            usage=self.spent,
        )


def _corrected(calls: Sequence[WrittenCall], problems: Sequence[Sequence[Correction]]) -> list[BaseMessage]:
    """Return the calls as the model made them, and what is wrong with each."""
    told = [" ".join(one.message for one in found) or "It was not made yet." for found in problems]
    if any(call.unread for call in calls):  # a template that shows calls shows no broken ones
        written = "\n".join(f"{call.name} {call.unread or compact_json(call.arguments)}" for call in calls)
        return [AIMessage(written), HumanMessage("\n".join(told))]
    ids = [f"correct{at:02}" for at in range(len(calls))]
    made = [
        ToolCall(name=call.name, args=call.arguments, id=id_, type="tool_call")
        for call, id_ in zip(calls, ids, strict=True)
    ]
    answers = [ToolMessage(text, tool_call_id=id_) for text, id_ in zip(told, ids, strict=True)]
    return [AIMessage("", tool_calls=made), *answers]
