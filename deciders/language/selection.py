"""Tool selection by a language model, at a low temperature."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, JsonValue, model_validator

from deciders.language.prompting import ModelSource, conversation, ledger, repair, results
from deciders.protocols import Selection, WantedCall
from models.structured import decide
from prompts.rendering import render
from state.base import Confidence
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.routing import Alternative, Correction
from tools.catalogue import Catalogue
from tools.palette import palette_text
from tools.validation import check_call


class CallAnswer(BaseModel):
    """One call, as the model writes it."""

    tool: str = Field(min_length=1)
    params: dict[str, JsonValue] = {}
    reasoning: str = ""


class AlternativeAnswer(BaseModel):
    """A tool that could also have served."""

    tool: str
    reason: str = ""


class SelectionAnswer(BaseModel):
    """What the model answers."""

    action: Literal["call", "none", "clarify", "describe"]
    calls: list[CallAnswer] = []
    tools: list[str] = []
    question: str = ""
    reasoning: str = ""
    confidence: Confidence
    alternatives: list[AlternativeAnswer] = []

    @model_validator(mode="after")
    def _complete(self) -> "SelectionAnswer":
        needed = {"call": self.calls, "clarify": self.question.strip(), "describe": self.tools}
        if self.action in needed and not needed[self.action]:
            field = {"call": "calls", "clarify": "question", "describe": "tools"}[self.action]
            raise ValueError(f'"action" is "{self.action}", but "{field}" is empty')
        return self


@dataclass(frozen=True)
class LanguageSelector:
    """Asks the lite model, shows it the palette, and corrects it once."""

    model: ModelSource

    async def select(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
        """Choose from the packet's palette.

        Raises:
            DecisionError: the model gave no usable answer, or insisted on a call that its tool does not take.
        """
        corrections: list[Correction] = []

        def objection(answer: SelectionAnswer) -> str | None:
            found = _corrections(answer, packet, catalogue)
            corrections.extend(found)
            return " ".join(correction.message for correction in found) or None

        answer = await decide(
            await self.model(),
            conversation(packet, _system(packet, catalogue, context), _user(packet)),
            SelectionAnswer,
            temperature=context.selection_temperature,
            top_p=context.selection_top_p,
            max_tokens=context.selection_max_tokens,
            validate=objection,
            repair_prompt=repair,
        )
        value = answer.value
        return Selection(
            action=value.action,
            calls=tuple(
                WantedCall(tool_name=call.tool, params=call.params, reasoning=call.reasoning or value.reasoning)
                for call in value.calls[: context.max_parallel_calls]
            )
            if value.action == "call"
            else (),
            tool_names=tuple(value.tools) if value.action == "describe" else (),
            question=value.question.strip() if value.action == "clarify" else "",
            alternatives=tuple(Alternative(tool_name=one.tool, reason=one.reason) for one in value.alternatives[:5]),
            corrections=tuple(corrections),
            confidence=value.confidence,
            reasoning=value.reasoning,
            decided_by="model",
            usage=answer.usage,
        )


def _corrections(answer: SelectionAnswer, packet: CognitionPacket, catalogue: Catalogue) -> list[Correction]:
    """What the model can mend by itself. A tool off the palette it can not: that widens the palette instead."""
    palette = packet.context.palette_names
    found = [
        correction
        for call in (answer.calls if answer.action == "call" else [])
        for correction in check_call(call.tool, call.params, palette, catalogue)
    ]
    return [correction for correction in found if correction.problem not in {"off_palette", "unknown_tool"}]


def _system(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> str:
    return render(
        "selection_system",
        ledger=ledger(catalogue),
        palette=palette_text(packet.context.palette, catalogue),
        max_calls=str(context.max_parallel_calls),
    )


def _user(packet: CognitionPacket) -> str:
    routing = packet.routing
    notes = [correction.message for correction in routing.corrections]
    if routing.describe_rounds and routing.suggestions:
        notes.append("Nearest tools: " + ", ".join(routing.suggestions))
    return render(
        "selection_user",
        request=packet.content.user_words,
        results=results(packet),
        corrections="\n\nCorrections:\n" + "\n".join(f"- {note}" for note in notes) if notes else "",
    )
