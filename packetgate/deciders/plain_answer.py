"""Answer without a language model: the results of calls, unchanged, and the reasons for calls that did not run."""

from collections.abc import Callable

from packetgate.deciders.protocols import Answer
from packetgate.ranking.ranking import ranking_of
from packetgate.state.channels import SwitchHints
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.passages import nearest_passages
from packetgate.tools.text.reading import is_small_talk, mentions_in, unquoted_words
from packetgate.tools.text.verbs import KNOWN_VERBS

MAX_RESULT_CHARS = 4_000
_EXCERPT_PARAGRAPHS = 4
LISTED = 6


def plain_answer(packet: CognitionPacket, without_calls: Callable[[], str], *, reports_servers: bool = True) -> Answer:
    """Return an answer with each call's result; long results are cut to the paragraphs near the request. Blocking.

    Args:
        without_calls: returns the answer if there is nothing to tell of calls.
        reports_servers: whether servers and tools that are not available are named.
    """
    routing, request = packet.tool_routing, packet.content.original_prompt
    parts: list[tuple[str, str]] = []
    if routing is not None:
        parts += [_outcome(call, request, packet.header.switch_hints) for call in routing.all_calls]
        if routing.note:
            parts.append((_sentence(routing.note), ""))
        if routing.suggestions:
            parts.append((f"Nearest tools: {', '.join(routing.suggestions)}.", ""))
    parts = parts or [(without_calls(), "")]
    if reports_servers and not is_small_talk(request):
        for heading, is_ready in (("Some servers are not available", False), ("Some tools are not available", True)):
            troubles = [
                one.problem_line
                for one in packet.context.servers
                if one.problem_line and (one.state == "ready") is is_ready
            ]
            parts += [(f"{heading}: {'; '.join(troubles)}.", "")] if troubles else []
    if packet.content.attachments:
        names = ", ".join(one.name for one in packet.content.attachments)
        parts.append((f"Attachments were not read, because no language model is configured: {names}.", ""))
    return Answer(
        text="\n\n".join(words + output for words, output in parts),
        markdown="\n\n".join(f"{words.rstrip()}\n{fenced(output)}" if output else words for words, output in parts),
        decided_by="reflex",
    )


def answer_without_tools(request: str, catalogue: Catalogue, no_match: str) -> str:
    """Return the answer to a request for which no tool is used: greetings, or `no_match` with the nearest tools."""
    if is_small_talk(request):
        tools = f"The tools: {', '.join([*catalogue][:LISTED])}. " if catalogue else ""
        return f"Hello! I route requests to tools. {tools}`packetgate tools` lists all."
    if not catalogue:
        return "No tools are connected. `packetgate doctor` shows why; servers are configured in `mcp.json`."
    near = [hit.name for hit in ranking_of(catalogue).rank(request, 3) if hit.terms]
    tools = f"Nearest tools: {', '.join(near)}" if near else f"Some tools: {', '.join(catalogue.interleaved_names[:3])}"
    return f"{no_match} {tools}; `packetgate tools` lists all."


def _outcome(call: ToolCall, request: str, switch_hints: SwitchHints) -> tuple[str, str]:
    params = ", ".join(f"{name}={shorten(str(value), 80)}" for name, value in call.params.items())
    name, error = f"{call.tool_name} ({params})", (call.result.error if call.result else "") or ""
    match call.status:
        case ToolExecutionStatus.EXECUTED if call.result:
            return f"{name}:\n", _excerpt(call.result.output, request, switch_hints.rest)
        case ToolExecutionStatus.FAILED:
            return f"{name} failed: ", error or "no result"
        case ToolExecutionStatus.UNKNOWN:
            why = error or call.review_reasoning or "no answer came"
            return f"{name} was started, and it is not known whether it finished: ", why
        case ToolExecutionStatus.USER_DENIED:
            return f"{name} was not run: you denied it.", ""
        case ToolExecutionStatus.SKIPPED if call.result and call.result.dry_run and call.is_unconfirmed_read:
            return f"Nothing was done. {name}: ", call.result.output
        case ToolExecutionStatus.SKIPPED if call.result and call.result.dry_run:
            off = f"Nothing was done: {call.risk} tools are switched off; {switch_hints.for_risk(call.risk)}."
            return f"{off} Dry run of {call.tool_name}:\n", _excerpt(call.result.output, request, switch_hints.rest)
        case ToolExecutionStatus.SKIPPED:
            return f"{name} was skipped: {error or call.review_reasoning}", ""
    return f"{name} was not run (status: {call.status.replace('_', ' ')}).", ""


def _excerpt(output: str, request: str, rest: str) -> str:
    text = output.strip()
    if len(text) <= MAX_RESULT_CHARS:
        return text or "(nothing)"
    subject = request
    for path in mentions_in(request).paths:
        subject = subject.replace(path, " ")
    subject = " ".join(word for word in unquoted_words(subject) if word not in KNOWN_VERBS)
    best = nearest_passages(text, subject, _EXCERPT_PARAGRAPHS)
    excerpt = "\n\n[...]\n\n".join(best)[:MAX_RESULT_CHARS] if best else text[:MAX_RESULT_CHARS]
    which = "the most relevant parts are shown" if best else "the beginning is shown"
    return f"{excerpt}\n\n[{len(text):,} characters in all; {which}; {rest}]"


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith((".", "?", "!")) else ".")
