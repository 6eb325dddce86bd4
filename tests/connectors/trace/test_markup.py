"""What stands on a page, read back as HTML: nothing of the data is markup, and what is missing is said to be."""

from datetime import UTC, datetime

import pytest
from support.full_packet import full_packet
from support.hostile_packet import HARMLESS, HIDDEN, HOSTILE, packet_saying
from support.html_reading import Page, read_html

from packetgate.connectors.trace.finding import Past
from packetgate.connectors.trace.page import GONE, REFLEX, SILENT, UNKNOWN, page
from packetgate.graph.records.prompts import StagePrompts
from packetgate.models.requests import ModelRequest, SentMessage
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Reasoning, Reflection

AT = datetime(2026, 2, 28, tzinfo=UTC)


def prompts(stage: str, text: str = "x") -> StagePrompts:
    one = ModelRequest(
        model=text,
        messages=(SentMessage(role=text, text=text),),
        options={text: text},
        answer=text,
        error=text,
        at=AT,
        duration_ms=1,
    )
    return StagePrompts(session_id="s", packet_id="p", stage=stage, role="lite", at=AT, exchanges=(one,))


def everything_says(text: str) -> Page:
    packet = packet_saying(text)
    return read_html(page(Past(packet, {"question": text}, (prompts(text, text), prompts("none", text)))))


def decided(**how: object) -> CognitionPacket:
    """Return a packet of one stage, decided so."""
    entry = Reflection.model_validate({"step": "select_tool", "summary": "chose", "at": AT, "latency_ms": 5} | how)
    return full_packet().model_copy(update={"reasoning": Reasoning(reflection_log=(entry,))})


def test_hostile_data_changes_nothing_but_the_text() -> None:
    hostile, harmless = everything_says(HOSTILE), everything_says(HARMLESS)
    assert hostile.tags == harmless.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in harmless.attributes]
    assert hostile.text.count("<script>alert(1)</script>") > 50
    assert not set(HIDDEN) & set(hostile.text)


def test_it_takes_only_styles_of_its_own() -> None:
    source = page(Past(full_packet()))
    assert "default-src 'none'; style-src 'unsafe-inline'" in source
    assert "url(" not in source
    assert "@import" not in source


@pytest.mark.parametrize(
    ("how", "said", "told"),
    [
        ({"decided_by": "model"}, None, UNKNOWN),
        ({"decided_by": "model"}, (), GONE),
        ({"decided_by": "reflex", "is_fallback": True}, (), GONE),
        ({"decided_by": "reflex", "is_fallback": True}, (prompts("respond"),), SILENT),
        ({"decided_by": "reflex"}, (prompts("respond"),), REFLEX),
        ({}, (prompts("respond"),), None),
        ({"decided_by": "model"}, (prompts("select_tool"),), None),
    ],
)
def test_prompts_that_are_not_there_are_told_why(
    how: dict[str, object], said: tuple[StagePrompts, ...] | None, told: str | None
) -> None:
    texts = read_html(page(Past(decided(**how), prompts=said))).texts
    assert [one for one in texts if one in {UNKNOWN, GONE, SILENT, REFLEX}] == [told] * (told is not None)


def test_all_of_a_packet_is_on_the_page() -> None:
    texts = read_html(page(Past(full_packet(), {"kind": "approval"}, ()))).text
    shown = [
        *("This turn waits", "Timeline", "select", "Calls", "call approved", "edited", ": ok", "Structured result"),
        *("1 of 2 tools, 120 tokens of text; 1 not offered", ", 3 of them for their access or subject", "ranked"),
        *("Selected, but not on the palette: files.wrote", "Could also have served: files.append", ": also writes"),
    ]
    assert [one for one in shown if one not in texts] == []
