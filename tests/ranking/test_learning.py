"""The ranking learns confirmed calls for their user and context. Their effect decreases with time."""

from datetime import timedelta

import pytest
from langgraph.store.memory import InMemoryStore
from support.tool_specs import a_tool

from packetgate.ranking.learning import ConfirmedUse, LearnedUses, add_support, rank_surprise
from packetgate.ranking.ranking import ranking_of
from packetgate.ranking.store import delete_uses, read_learned, store_use
from packetgate.state.base import now
from packetgate.state.sections import Header
from packetgate.tools.catalogue.catalogue import Catalogue

TOOLS = Catalogue([a_tool("music.play", "Play a song."), a_tool("lamp.switch", "Switch a lamp.")])
MINE, THEIRS = Header(origin="discord", person="1"), Header(origin="discord", person="2")


def use(tool: str, asked: str, *, days_ago: float = 0, context_type: str = "general") -> ConfirmedUse:
    at = now() - timedelta(days=days_ago)
    return ConfirmedUse(tool=tool, asked=asked, context_type=context_type, session_id="s", at=at)


def first(learned: LearnedUses, request: str) -> str | None:
    hits = add_support(ranking_of(TOOLS).rank(request), learned.support(request, "general"))[:5]
    return hits[0].name if hits else None


def test_a_similar_request_finds_the_used_tool():
    learned = LearnedUses([use("lamp.switch", "Make it cosy in here"), use("music.play", "Cheer me up")])
    assert first(learned, "make the room cosy") == "lamp.switch"
    assert first(learned, "play a song") == "music.play"
    assert learned.support("something else entirely", "general") == {}


def test_old_uses_and_other_contexts_count_less():
    def support(**more: object) -> float:
        return LearnedUses([use("lamp.switch", "make it cosy", **more)]).support("make it cosy", "general")[
            "lamp.switch"
        ]  # type: ignore[arg-type]

    assert support() == pytest.approx(1, abs=0.01)
    assert support(days_ago=60) == pytest.approx(0.5, abs=0.01)
    assert support(context_type="work") == pytest.approx(0.5, abs=0.01)


def test_a_use_of_the_best_ranked_tool_has_no_weight():
    assert rank_surprise(2.0, 2.0) == 0
    assert rank_surprise(0.5, 2.0) == 0.75
    assert rank_surprise(0.0, 0.0) == 1


async def test_users_are_separate_and_uses_can_be_forgotten():
    store = InMemoryStore()
    await store_use(store, MINE, "p-0", use("lamp.switch", "make it cosy"))
    assert first(await read_learned(store, MINE), "cosy please") == "lamp.switch"
    assert first(await read_learned(store, THEIRS), "cosy please") is None
    assert await delete_uses(store, "music") == 0
    assert await delete_uses(store, "lamp") == 1
    assert first(await read_learned(store, MINE), "cosy please") is None
