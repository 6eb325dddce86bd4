"""Find past packets in the local database and on a server."""

import pytest
from support.turn_places import Place, answering, wanting

from packetgate.connectors.trace import find_packet, open_archive
from packetgate.connectors.turn import Reply, Say
from packetgate.state.errors import PacketError
from packetgate.state.sections import PacketState


async def test_a_turn_is_found_while_it_waits_and_afterwards(place: Place) -> None:
    place.model.requests.clear()
    place.model.script(*wanting("ai.write", "write", path="found.txt", content="owl"), *answering("Written."))
    async with place.session(allow_write_tools=True) as talk:
        question = await talk.question(Say("Write owl into found.txt"))
        async with open_archive(place.settings) as sessions:
            waiting = await find_packet(sessions, "last", talk.name)
        packet = await talk.answer(Reply("yes"))
        later = await talk.answer(Say("Hello"))
    assert waiting.packet.status.state is PacketState.AWAITING_USER
    assert waiting.question == question
    assert waiting.packet.header.packet_id == packet.header.packet_id
    async with open_archive(place.settings) as sessions:
        for session in (None, talk.name):
            found = await find_packet(sessions, packet.header.packet_id[:12], session)
            assert found.packet == packet
            assert found.question is None
        assert (await find_packet(sessions, "last", None)).packet.header.packet_id == later.header.packet_id


async def test_a_missing_packet_is_an_error(place: Place) -> None:
    async with open_archive(place.settings) as sessions:
        with pytest.raises(PacketError, match="00000000"):
            await find_packet(sessions, "00000000", None)
        with pytest.raises(PacketError, match="'nobody'"):
            await find_packet(sessions, "00000000", "nobody")
