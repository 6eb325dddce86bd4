"""Decide without a model and without plug-ins: the plainest reads, and an answer with their results.

Everything else needs a model.
"""

import asyncio
import re
from collections.abc import Callable
from functools import partial

from packetgate.deciders.commands import usage_of
from packetgate.deciders.intent import access_of_risk, intent_decision
from packetgate.deciders.protocols import Answer, Deciders, IntentDecision, Review, SelectedCall, Selection
from packetgate.gate.confidence import CallReview
from packetgate.ranking.ranking import ranking_of
from packetgate.state.channels import SwitchHints
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced, shorten
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.text.passages import nearest_passages
from packetgate.tools.text.reading import ABOUT_TOOLS, TALK_REPLIES, is_small_talk, mentions_in, talk_in, unquoted_words
from packetgate.tools.text.verbs import KNOWN_VERBS
from packetgate.tools.text.words import words_of
from packetgate.tools.typed_calls import command_names

PLAIN_READ = "the request only asks to read this"
NO_MODEL = (
    "This needs a language model, and none is configured: {}. `pip install '.[reflex]'`, in a clone of Packetgate,"
    " adds rules that read simple requests without a model. Without both, type a call, such as `/read README.md`, or"
    " `read README.md`."
)
NO_ANSWER = "The language model gave no usable answer, and nothing else can read this request."
_BUILT_IN_READ = "ai.read"
_READ = re.compile(
    r"(?:please\s+)?(?:read|show|open|print|display|view|cat|list|ls)(?:\s+me)?(?:\s+(?:the|file|folder|contents?\s+of))*"
    r"\s+[`\"']?(?P<path>[^\s`\"']*[\w/])[`\"']?(?:,?\s+please)?[.!]?",
    re.IGNORECASE,
)
_PATH = (("path",), ("file",), ("filename",), ("file_path",), ("filepath",))
MAX_RESULT_CHARS = 4_000
_EXCERPT_PARAGRAPHS = 4
LISTED = 6


def plain_deciders(*, beside_model: bool = False) -> Deciders:
    """Return the deciders that need neither a model nor a plug-in; with a model, they decide if it fails."""
    respond = partial(respond_plainly, beside_model=beside_model)
    return Deciders(detect_plainly, select_plainly, review_plainly, respond)


async def detect_plainly(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Return that a tool is needed if the request is a plain read that was not made yet."""
    request = packet.content.original_prompt
    if packet.tool_routing is not None:
        return intent_decision(False, request, packet.intent.access, "the request is done")
    call, catalogue = None, Catalogue()
    if not is_small_talk(request):
        catalogue = await toolbox.catalogue()
        call = requested_call(request, catalogue)
    if call is None:
        return intent_decision(False, request, Access.READ, "not a plain read")
    return intent_decision(True, request, access_of_risk(catalogue[call.tool_name].risk), call.reasoning)


async def select_plainly(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Return the call of a plain read; otherwise none."""
    call = requested_call(packet.content.original_prompt, catalogue)
    if call is None:
        return await select_nothing(packet, catalogue, context)
    return Selection(
        action="call", calls=(call,), complete=True, confidence=1.0, reasoning=call.reasoning, decided_by="reflex"
    )


async def select_nothing(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Return a selection without a call: nothing replaces a model that made no valid call."""
    return Selection(action="none", needs_tool=False, confidence=1.0, decided_by="reflex")


async def review_plainly(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Approve what the request says word for word. Of any other call nothing is known, so that the user is asked."""
    requested = requested_call(packet.content.original_prompt, catalogue)

    def review(call: ToolCall) -> CallReview:
        if requested is not None and call.tool_name == requested.tool_name and not call.unstated_origins:
            return CallReview.unjudged(call, requested.reasoning)
        reason = "no model and no plug-in judges this call"
        return CallReview(call_id=call.call_id, approved=False, confidence=0.0, reasoning=reason)

    return Review(reviews=tuple(map(review, packet.routing.calls)), decided_by="reflex")


async def respond_plainly(
    packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext, *, beside_model: bool = False
) -> Answer:
    """Return each call's result, and why other calls did not run; without a call, what can be typed."""
    hints = packet.header.switch_hints
    no_match = NO_ANSWER if beside_model else NO_MODEL.format(hints.model)
    without = partial(answer_without_tools, packet.content.original_prompt, catalogue, no_match, hints)
    return await asyncio.to_thread(plain_answer, packet, without)


def requested_call(request: str, catalogue: Catalogue) -> SelectedCall | None:
    """Return the call that a request consists of: a plain read such as `read README.md`."""
    match = _READ.fullmatch(request.strip())
    if match is None:
        return None
    reader = catalogue.get(_BUILT_IN_READ)
    if reader is None:
        readers = [
            spec
            for spec in catalogue.values()
            if spec.risk is Risk.READ and "read" in words_of(spec.upstream_name) and tuple(spec.required) in _PATH
        ]
        if len(readers) != 1:
            return None
        (reader,) = readers
    return SelectedCall(tool_name=reader.name, params={reader.required[0]: match["path"]}, reasoning=PLAIN_READ)


def plain_answer(packet: CognitionPacket, without_calls: Callable[[], str], *, reports_servers: bool = True) -> Answer:
    """Return an answer with each call's result; long results are cut to the paragraphs near the request. Blocking.

    Args:
        without_calls: returns the answer if there is nothing to tell of calls.
        reports_servers: whether servers and tools that are not available are named.
    """
    routing, request = packet.tool_routing, packet.content.original_prompt
    parts: list[tuple[str, str]] = []
    if routing is not None:
        parts += [call_outcome(call, packet) for call in routing.all_calls]
        if routing.note:
            end = "" if routing.note.endswith((".", "?", "!")) else "."
            parts.append((routing.note[:1].upper() + routing.note[1:] + end, ""))
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


def answer_without_tools(request: str, catalogue: Catalogue, no_match: str, hints: SwitchHints) -> str:
    """Return the answer to a request for which no tool is used: greetings, or `no_match` with the nearest tools."""
    talk = talk_in(request)
    if talk in TALK_REPLIES:
        return TALK_REPLIES[talk]
    if talk in ABOUT_TOOLS:
        return _what_it_can_do(catalogue, hints)
    if talk:
        tools = f" Some of them: {', '.join([*catalogue][:LISTED])}." if catalogue else ""
        return f"Hello! I route requests to tools.{tools}"
    if not catalogue:
        return f"No tools are connected: {hints.tools}."
    return f"{no_match} {nearest_commands(request, catalogue)}"


def nearest_commands(request: str, catalogue: Catalogue) -> str:
    """Return a sentence that names the commands whose tools resemble a request most, without arguments. Blocking."""
    near = [hit.name for hit in ranking_of(catalogue).rank(request, 3) if hit.terms]
    names = command_names(catalogue)
    usages = [f"`{usage_of(catalogue[name], names[name])}`" for name in near or catalogue.interleaved_names[:3]]
    return f"{'Nearest' if near else 'Some'} commands: {', '.join(usages)}; `/help` lists all."


def _what_it_can_do(catalogue: Catalogue, hints: SwitchHints) -> str:
    """Return what the tools do, with an example, and how to allow more."""
    if not catalogue:
        return f"I am Packetgate: I route requests to tools. No tools are connected: {hints.tools}."
    tools = [catalogue[name] for name in catalogue.interleaved_names]
    shown = sorted(tools, key=lambda spec: spec.risk is not Risk.READ)[:LISTED]
    lines = [f"- {spec.name}: {shorten(spec.brief.partition('. ')[0].rstrip('.'), 100)}" for spec in shown]
    more = f"\n- and {len(catalogue) - len(shown)} more" if len(catalogue) > len(shown) else ""
    example = next((spec for spec in shown if not spec.required), shown[0])
    call = usage_of(example, command_names(catalogue)[example.name])
    return (
        "I am Packetgate: I route requests to tools, and ask before anything changes. "
        f"Some of my {len(catalogue)} tools:\n" + "\n".join(lines) + f"{more}\n\n"
        f"Say what you want in plain words, such as `read README.md`, or type a call, such as `{call}`; `/help` lists "
        f"them. Tools that change things: {hints.write}. Commands: {hints.execute}."
    )


def call_outcome(call: ToolCall, packet: CognitionPacket) -> tuple[str, str]:
    """Return what became of a call, in words, and its output if it has one; long output is cut. Blocking."""
    request, switch_hints = packet.content.original_prompt, packet.header.switch_hints
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
