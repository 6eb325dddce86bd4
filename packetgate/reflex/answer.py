"""Answer a turn of `reflex`: results unchanged, and why no tool was used."""

import asyncio

from packetgate.deciders.fallback import LISTED, answer_without_tools, plain_answer
from packetgate.deciders.protocols import Answer
from packetgate.ranking.ranking import ranking_of
from packetgate.reflex.reading import steps_in
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.reading import is_small_talk


async def respond_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
    """Return an answer with each call's result."""
    return await asyncio.to_thread(_answer, packet, catalogue)


def _answer(packet: CognitionPacket, catalogue: Catalogue) -> Answer:
    request = packet.content.original_prompt
    only_forbids = not is_small_talk(request) and not steps_in(request)

    def without_calls() -> str:
        if only_forbids and packet.tool_routing is None:
            return "Nothing was done, as you asked."
        hints = packet.header.switch_hints
        asked = any(entry.decided_by == "model" or entry.is_fallback for entry in packet.reasoning.reflection_log)
        how = "the language model gave no usable answer" if asked else f"no language model is configured: {hints.model}"
        no_match = "" if is_small_talk(request) else _no_match(request, catalogue, how)
        return answer_without_tools(request, catalogue, no_match, hints)

    return plain_answer(packet, without_calls, reports_servers=not only_forbids)


def _no_match(request: str, catalogue: Catalogue, how: str) -> str:
    unknown = [f'"{word}"' for word in ranking_of(catalogue).unknown_words(request)]
    text = f"No tool matches this request, and {how}."
    return f"{text} Unknown words: {', '.join(unknown[:LISTED])}." if unknown else text
