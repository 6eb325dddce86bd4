"""Any output of a model becomes its evident call, a question, no call, or the fallback; nothing is guessed."""

import asyncio

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from support.hostile_markup import MARKUP
from support.hostile_meanings import MEANINGS
from support.hostile_outputs import READ, Hostile, Outcome
from support.hostile_reviews import REVIEWS, HostileReview
from support.hostile_spelling import SPELLING
from support.packets import CONTEXT, FILES, done, packet
from support.scripted_openai import ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.outcome import routing_after_selection
from packetgate.deciders.packets import facts_of
from packetgate.deciders.protocols import FAILED_REVIEW, Selection
from packetgate.gate.gate import Gate
from packetgate.gate.journal import MemoryJournal
from packetgate.models.model import Model
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.models.options import ModelOptions
from packetgate.models.pool import ModelSource
from packetgate.reflex.plugin import select_by_reflex
from packetgate.state.errors import DecisionError
from packetgate.state.routing import ToolRouting
from packetgate.state.transitions import ToolExecutionStatus

SELECTIONS = [*SPELLING, *MARKUP, *MEANINGS]
ASK = packet("Read a.txt")
PENDING = ToolExecutionStatus.PENDING
CALLS = (done("files.read_file", PENDING, path="b.txt"), done("files.list_directory", PENDING, path="d"))


class _Writer:
    """A model that writes these texts in order."""

    def __init__(self, *texts: str) -> None:
        self._left = [AIMessage(text) for text in reversed(texts)]
        self._model = Model(GenericFakeChatModel(messages=iter(self._left.pop, None)))

    async def __call__(self) -> Model:
        return self._model

    @property
    def unasked(self) -> int:
        return len(self._left)


async def select(model: ModelSource) -> Selection:
    return await language_deciders(model, model).selector(ASK, FILES, CONTEXT)


def settled(selection: Selection) -> ToolRouting:
    return routing_after_selection(selection, ASK, FILES, CONTEXT)


def outcome(routing: ToolRouting) -> Outcome:
    return Outcome(routing.outcome, tuple((call.tool_name, call.params) for call in routing.calls))


@pytest.mark.parametrize("row", [row for row in SELECTIONS if row.expected.kind != "refused"], ids=lambda row: row.id)
async def test_accepted_selections(row: Hostile):
    model = _Writer(row.text, READ)
    selection = await select(model)
    assert outcome(settled(selection)) == row.expected
    assert (selection.decided_by, selection.is_fallback, model.unasked) == ("model", False, 1)


@pytest.mark.reflex
@pytest.mark.parametrize("row", [row for row in SELECTIONS if row.expected.kind == "refused"], ids=lambda row: row.id)
async def test_rejected_selections(row: Hostile):
    """After one invalid output the model corrects it; after two, `reflex` decides."""
    repaired = await select(_Writer(row.text, READ))
    assert outcome(settled(repaired)) == outcome(settled(await select(_Writer(READ))))
    assert not repaired.is_fallback
    fallen = await select(_Writer(row.text, row.text))
    assert fallen.is_fallback
    assert "in two attempts" in fallen.fallback_reason
    assert fallen.calls == (await select_by_reflex(ASK, FILES, CONTEXT)).calls


@pytest.mark.parametrize("row", REVIEWS, ids=lambda row: row.id)
async def test_hostile_reviews_approve_nothing(row: HostileReview):
    """An invalid review gives every call the confidence 0.0."""
    model = _Writer(row.text, row.text)
    try:
        review = await language_deciders(model, model).reviewer(packet("Read", *CALLS), FILES, CONTEXT)
    except DecisionError:
        review = FAILED_REVIEW
    reviews = {one.call_id: one for one in review.reviews}
    facts = facts_of(packet("Read", *CALLS), FILES)
    judged = (await Gate(MemoryJournal()).propose(CALLS, facts, reviews)).calls
    assert tuple(call.review_confidence for call in judged) == row.expected
    passed = tuple(call.status is ToolExecutionStatus.APPROVED for call in judged)
    assert passed == tuple(confidence >= CONTEXT.confidence_threshold for confidence in row.expected)


@pytest.mark.parametrize("row", SELECTIONS[:: len(SELECTIONS) // 8], ids=lambda row: row.id)
async def test_hostile_selections_over_http(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch, row: Hostile
):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    async def source() -> Model:
        chat = await asyncio.to_thread(connect, "scripted", Endpoint(scripted_openai.base_url, None, timeout=10))
        return Model(chat, ModelOptions(native_tools=False))

    scripted_openai.script(row.text, row.text)
    selection = await select(source)
    assert selection.is_fallback is (row.expected.kind == "refused")
    assert selection.is_fallback or outcome(settled(selection)) == row.expected
