"""Answer a turn of `reflex`: the unchanged results, or the reason why no tool was used."""

import asyncio

from packetgate.deciders.fallback import LISTED, answer_without_tools, nearest_commands, plain_answer
from packetgate.deciders.protocols import Answer
from packetgate.ranking.ranking import ranking_of
from packetgate.reflex.reading import steps_in
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.reading import is_small_talk
from packetgate.tools.typed_calls import render_call

_PICK = "Nearest commands, to be typed, or picked by their number:"


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

    answer = plain_answer(packet, without_calls, reports_servers=not only_forbids)
    routing = packet.tool_routing
    if routing is None or routing.outcome != "none" or not catalogue:
        return answer
    if routing.all_calls and not routing.offered_calls:
        return answer
    calls = [_shown(call, catalogue) for call in routing.offered_calls if call.tool_name in catalogue]
    listed = "\n".join([_PICK, *(f"{number}. {call}" for number, call in enumerate(calls, 1))])
    parts = [listed if calls else nearest_commands(request, catalogue)]
    parts.append(f"A language model understands more requests: {packet.header.switch_hints.model}.")
    texts = ("\n\n".join([text, *parts]) for text in (answer.text, answer.markdown))
    return answer.changed(text=next(texts), markdown=next(texts))


def _shown(call: Alternative, catalogue: Catalogue) -> str:
    missing = [f"`{name}`" for name in catalogue[call.tool_name].required if name not in call.params]
    needs = f", which needs {' and '.join(missing)}" if missing else ""
    return f"`{render_call(call.tool_name, call.params, catalogue)}`{needs}"


def _no_match(request: str, catalogue: Catalogue, how: str) -> str:
    unknown = [f'"{word}"' for word in ranking_of(catalogue).unknown_words(request)]
    text = f"No tool matches this request, and {how}."
    return f"{text} Unknown words: {', '.join(unknown[:LISTED])}." if unknown else text
