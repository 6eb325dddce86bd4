"""How a packet looks in a notebook: all of it is there, and none of its data is more than text."""

from dataclasses import dataclass

import pytest
from support.full_packet import full_packet
from support.hostile_packet import HARMLESS, HIDDEN, HOSTILE, packet_saying
from support.html_reading import read_html

from packetgate.state.html.rendering import duration, environment, excerpt, visible
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus


def test_all_of_a_packet_is_shown() -> None:
    text = read_html(full_packet()._repr_html_()).text
    shown = [
        *("write it", "to a.txt", "awaiting user", "session s", "terminal", "28 Feb 2026, 23:59:59 UTC"),
        *("mixed", "2 of 4 reinjections", "1.5 ms", "10 tokens in (2 known), 3 out"),
        *("Journey", "select", "chose", "0.50", "0.1 ms", "reflexes stood in for the model"),
        *(
            "Calls",
            "files.write_file",
            "execute",
            "unknown (dry run) in 12.3 ms",
            "from the text that files.read_file returned: it stands in a text only",
            "Say the text.",
        ),
        *("number", "-1.5e-300", "it writes", "0.30", "fine", "~0.70", "but", "the text"),
        "resource a.png, image/png, 12 kB",
        *("Palette", "1 of 2 tools, 120 tokens", "; 3 left out", "ranked, in brief"),
        *("Answer", "Done.", "respond: late", "tool markup cut out of the answer: 2"),
    ]
    assert [one for one in shown if one not in text] == []


def test_a_packet_that_was_asked_nothing_says_so() -> None:
    page = read_html(CognitionPacket()._repr_html_())
    assert "nothing asked yet" in page.text
    assert "section" not in page.tags


@pytest.mark.parametrize("status", ToolExecutionStatus)
def test_every_status_of_a_call_is_told_in_words(status: ToolExecutionStatus) -> None:
    packet = CognitionPacket(tool_routing=ToolRouting(calls=(ToolCall(tool_name="a.b", status=status),)))
    assert status.replace("_", " ") in read_html(packet._repr_html_()).texts


def test_hostile_data_changes_nothing_but_the_text() -> None:
    hostile, harmless = (read_html(packet_saying(text)._repr_html_()) for text in (HOSTILE, HARMLESS))
    assert hostile.tags == harmless.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in harmless.attributes]
    assert hostile.text.count("<script>alert(1)</script>") > 20


def test_what_cannot_be_seen_is_shown() -> None:
    source = packet_saying(HOSTILE)._repr_html_()
    assert not set(HIDDEN) & set(source)
    assert "⟨U+202E⟩⟨U+2066⟩⟨U+00AD⟩⟨U+001B⟩[2J" in source


def test_a_card_loads_nothing() -> None:
    page = read_html(packet_saying(HOSTILE)._repr_html_())
    assert {"script", "link", "img", "iframe"}.isdisjoint(page.tags)
    assert {name for name, _ in page.attributes} <= {"class", "style", "title", "scope"}
    assert "url(" not in packet_saying(HARMLESS)._repr_html_()


def test_a_card_is_bounded_whatever_a_tool_returns() -> None:
    long, longer = (packet_saying("<" * length)._repr_html_() for length in (20_000, 60_000))
    assert len(long) == len(longer)


@dataclass(frozen=True)
class Time:
    milliseconds: float
    shown: str


@pytest.mark.parametrize(
    "case",
    [
        Time(0.04, "0.0 ms"),
        Time(99.94, "99.9 ms"),
        Time(812.4, "812 ms"),
        Time(1_234.0, "1.2 s"),
        Time(61_000.0, "1 min 01 s"),
        Time(7_500_000.0, "2 h 05 min"),
    ],
)
def test_times_are_written_as_people_do(case: Time) -> None:
    assert duration(case.milliseconds) == case.shown


def test_an_attribute_cannot_be_left() -> None:
    page = read_html(environment().from_string('<i title="{{ title }}"></i>').render(title='" onclick="x'))
    assert page.attributes == [("title", '" onclick="x')]


def test_an_excerpt_tells_what_it_leaves_out() -> None:
    assert excerpt("a" * 1_234, 200) == "a" * 200 + " … (1,034 more characters)"


def test_joined_emoji_stay_whole() -> None:
    family = "👩\u200d👧"
    assert visible(family) == family
