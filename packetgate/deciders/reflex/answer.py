"""An answer without a model: what the tools returned, and plainly what did not happen."""

import asyncio
from collections.abc import Sequence

from packetgate.deciders.protocols import Answer
from packetgate.deciders.reflex.reading import VERBS, is_small_talk, mentions_in, steps_in, words_in
from packetgate.state.channels import SwitchHints
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ServerHealth
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.passages import nearest_passages
from packetgate.tools.text.words import query_terms

SHOWN_CHARS = 4_000
EXCERPT_PARAGRAPHS = 4
SOME, NEAREST = 6, 3
"""Names and words, and nearest tools, that are told."""


async def respond_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
    """Show results as they are; of a long one, the paragraphs that share most words with the request."""
    return await asyncio.to_thread(_answer, packet, catalogue)


def _answer(packet: CognitionPacket, catalogue: Catalogue) -> Answer:
    """Blocking: a long output is searched."""
    routing, request = packet.tool_routing, packet.content.original_prompt
    told: list[tuple[str, str]] = []
    if routing is None:
        told.append((_nothing_to_do(request, catalogue), ""))
    else:
        told += [_tell(call, request, packet.header.way_out) for call in routing.all_calls]
        if routing.note:
            told.append((_sentence(routing.note), ""))
        if routing.suggestions:
            told.append(("Nearest tools: " + ", ".join(routing.suggestions) + ".", ""))
        told = told or [(_nothing_fits(request, catalogue), "")]
    if not is_small_talk(request) and steps_in(request):
        troubled = [server for server in packet.context.servers if server.trouble]
        told += _trouble("Not everything was reachable", [one for one in troubled if one.state != "ready"])
        told += _trouble("Not every tool is there", [one for one in troubled if one.state == "ready"])
    if packet.content.attachments:
        names = ", ".join(one.name for one in packet.content.attachments)
        told.append((f"Without a language model I cannot read what came with it: {names}.", ""))
    return Answer(
        text="\n\n".join(words + output for words, output in told),
        markdown="\n\n".join(f"{words.rstrip()}\n{fenced(output)}" if output else words for words, output in told),
        decided_by="reflex",
    )


def _trouble(what: str, servers: Sequence[ServerHealth]) -> list[tuple[str, str]]:
    return [(f"{what}: {'; '.join(server.trouble for server in servers)}.", "")] if servers else []


def _hello(catalogue: Catalogue) -> str:
    names = list(catalogue)
    some = ", ".join(names[:SOME]) + (f" and {len(names) - SOME} more" if len(names) > SOME else "")
    where = f"Ask for something these can do: {some}." if names else "`packetgate tools` lists what can be asked for."
    return f"Hello! I route requests to tools; to talk, it takes a language model that answers. {where}"


def _nothing_to_do(request: str, catalogue: Catalogue) -> str:
    if is_small_talk(request):
        return _hello(catalogue)
    return _nothing_fits(request, catalogue) if steps_in(request) else "Nothing was done, as you said."


def _nothing_fits(request: str, catalogue: Catalogue) -> str:
    """Say which words no tool knows, and which tools are nearest for the others."""
    if not catalogue:
        return "No tools are connected. `packetgate doctor` says why, and `mcp.json` is where servers are named."
    near = [hit for hit in catalogue.ranking.rank(request, NEAREST) if hit.terms]
    known = {term for hit in catalogue.ranking.by_words(request, len(catalogue)) for term in hit.terms}
    strange = [word for word in query_terms(request) if word not in known]
    told = ["No tool here is made for that; to talk, it takes a language model that answers."]
    if strange:
        told.append(f"No tool knows {_listed(strange[:SOME])}.")
    if near:
        told.append("Nearest: " + "; ".join(f"{hit.name} (knows {_listed(sorted(hit.terms))})" for hit in near) + ".")
    else:
        some = ", ".join(catalogue.samples[:NEAREST])
        told.append(f"There are, for example: {some}; `packetgate tools` lists what can be asked for.")
    return " ".join(told)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _tell(call: ToolCall, request: str, way_out: SwitchHints) -> tuple[str, str]:
    """Return what happened, and what the tool itself said."""
    called, error = f"{call.tool_name} ({_params(call)})", call.result.error or "" if call.result else ""
    match call.status:
        case ToolExecutionStatus.EXECUTED if call.result:
            return f"{called}:\n", _shown(call.result.output, request, way_out.rest)
        case ToolExecutionStatus.FAILED:
            return f"{called} failed: ", error or "no result"
        case ToolExecutionStatus.UNKNOWN:
            why = error or call.review_reasoning or "no answer came"
            return f"{called} was started, and whether it finished is not known: ", why
        case ToolExecutionStatus.USER_DENIED:
            return f"{called} was not run: you denied it.", ""
        case ToolExecutionStatus.SKIPPED if call.result and call.result.dry_run and call.unvouched:
            return f"Nothing was done. {called}: ", call.result.output
        case ToolExecutionStatus.SKIPPED if call.result and call.result.dry_run:
            off = f"Nothing was done: {call.risk} tools are switched off; {way_out.of(call.risk)}."
            return f"{off} {call.tool_name} answers to a dry run:\n", _shown(call.result.output, request, way_out.rest)
        case ToolExecutionStatus.SKIPPED:
            return f"{called} was skipped: {error or call.review_reasoning}", ""
    return f"{called} was not run (it is {call.status}).", ""


def _params(call: ToolCall) -> str:
    return ", ".join(f"{name}={shorten(str(value), 80)}" for name, value in call.params.items())


def _shown(output: str, request: str, rest: str) -> str:
    text = output.strip()
    if len(text) <= SHOWN_CHARS:
        return text or "(nothing)"
    best = nearest_passages(text, _topic(request), EXCERPT_PARAGRAPHS)
    excerpt = "\n\n[...]\n\n".join(best)[:SHOWN_CHARS] if best else text[:SHOWN_CHARS]
    which = "these parts are nearest to the request" if best else "this is where it begins"
    return f"{excerpt}\n\n[{len(text):,} characters in all; {which}; {rest}]"


def _topic(request: str) -> str:
    """What the request is about: its words without the paths and verbs, which say where to look and what to do."""
    for path in mentions_in(request).paths:
        request = request.replace(path, " ")
    return " ".join(word for word in words_in(request) if word not in VERBS)


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith((".", "?", "!")) else ".")
