"""A packet in a notebook: its data is only ever text."""

from support.full_packet import full_packet
from support.hostile_packet import HARMLESS, HIDDEN, HOSTILE, packet_saying
from support.html_reading import read_html

from packetgate.state.packet import CognitionPacket


def test_a_card_shows_stages_calls_answer_and_problems() -> None:
    text = read_html(full_packet()._repr_html_()).text
    parts = [
        *("write it", "awaiting user", "select", "chose", "0.50", "0.1 ms", "files.write_file", "execute"),
        *("unknown (dry run)", "from the text that files.read_file returned", "~0.70", "Done.", "late"),
    ]
    assert [part for part in parts if part not in text] == []
    assert "table" not in read_html(CognitionPacket()._repr_html_()).tags


def test_hostile_data_stays_text_and_loads_nothing() -> None:
    source = packet_saying(HOSTILE)._repr_html_()
    hostile, harmless = read_html(source), read_html(packet_saying(HARMLESS)._repr_html_())
    assert (hostile.tags, hostile.attributes) == (harmless.tags, [])
    assert hostile.text.count("<script>alert(1)</script>") > 10
    assert {"script", "link", "img", "iframe"}.isdisjoint(hostile.tags)
    assert not set(HIDDEN) & set(source)


def test_a_card_is_bounded_whatever_a_tool_returns() -> None:
    long, longer = (packet_saying("<" * length)._repr_html_() for length in (20_000, 60_000))
    assert len(long) == len(longer)
