"""Decide without a model and without plug-ins: only typed commands call tools, and the answer shows their results."""

import asyncio
from collections.abc import Callable
from functools import partial

from packetgate.deciders.commands import usage_of
from packetgate.deciders.intent import intent_decision
from packetgate.deciders.protocols import Answer, Deciders, IntentDecision, Review, Selection
from packetgate.gate.confidence import CallReview
from packetgate.gate.replies import read_reply
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
from packetgate.tools.typed_calls import command_names

NO_MODEL = (
    "This needs a language model, and none is configured: {}. `pip install '.[reflex]'`, in a clone of Packetgate,"
    " adds rules that read simple requests without a model. Without both, type a command, such as `/read README.md`."
)
NO_ANSWER = "The language model gave no usable answer, and nothing else can read this request."
MAX_RESULT_CHARS = 4_000
_EXCERPT_PARAGRAPHS = 4
LISTED = 6


def plain_deciders(*, beside_model: bool = False) -> Deciders:
    """Return the deciders that need neither a model nor a plug-in; with a model, they decide if it fails."""
    respond = partial(respond_plainly, beside_model=beside_model)
    return Deciders(detect_plainly, select_nothing, approve_nothing, respond)


async def detect_plainly(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Decide that no tool is needed: a typed command needs no decision."""
    request = packet.content.original_prompt
    if not is_small_talk(request):
        await toolbox.catalogue()  # the answer names tools
    return intent_decision(False, request, Access.READ, "only typed commands call tools")


async def select_nothing(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Return a selection without a call: nothing replaces a model that made no valid call."""
    return Selection(action="none", needs_tool=False, confidence=1.0, decided_by="reflex")


async def approve_nothing(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Return a review that approves no call, so that the user is asked about each."""
    reason = "no model and no plug-in judges this call"
    reviews = tuple(CallReview.failed(call, reason) for call in packet.routing.calls)
    return Review(reviews=reviews, decided_by="reflex")


async def respond_plainly(
    packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext, *, beside_model: bool = False
) -> Answer:
    """Return each call's result, and why other calls did not run; without a call, the commands that can be typed."""
    hints = packet.header.switch_hints
    no_match = NO_ANSWER if beside_model else NO_MODEL.format(hints.model)
    request = packet.content.original_prompt
    without_calls = partial(answer_without_tools, request, catalogue, no_match, hints, reads_words=beside_model)
    return await asyncio.to_thread(plain_answer, packet, without_calls)


def plain_answer(packet: CognitionPacket, without_calls: Callable[[], str], *, reports_servers: bool = True) -> Answer:
    """Return an answer with each call's result; long results are cut to the paragraphs near the request. Blocking.

    Args:
        without_calls: returns the answer if there is nothing to report about calls.
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


def answer_without_tools(
    request: str, catalogue: Catalogue, no_match: str, hints: SwitchHints, *, reads_words: bool = True
) -> str:
    """Return the answer to a request for which no tool is used: greetings, or `no_match` with the nearest tools.

    Args:
        reads_words: whether the decider understands more than typed commands.
    """
    talk = talk_in(request)
    if talk in TALK_REPLIES:
        return TALK_REPLIES[talk]
    if read_reply(request) is not None:
        return "No question is open, so there is nothing to approve or refuse."
    if talk in ABOUT_TOOLS:
        return _what_it_can_do(catalogue, hints, reads_words=reads_words)
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


def _what_it_can_do(catalogue: Catalogue, hints: SwitchHints, *, reads_words: bool) -> str:
    """Return the tools' capabilities, with an example, and how to allow more."""
    if not catalogue:
        return f"I am Packetgate: I route requests to tools. No tools are connected: {hints.tools}."
    tools = [catalogue[name] for name in catalogue.interleaved_names]
    shown = sorted(tools, key=lambda spec: spec.risk is not Risk.READ)[:LISTED]
    lines = [f"- {spec.name}: {shorten(spec.brief.partition('. ')[0].rstrip('.'), 100)}" for spec in shown]
    more = f"\n- and {len(catalogue) - len(shown)} more" if len(catalogue) > len(shown) else ""
    example = next((spec for spec in shown if not spec.required), shown[0])
    call = usage_of(example, command_names(catalogue)[example.name])
    say = "Say what you want in plain words, such as `read README.md`, or type" if reads_words else "Type"
    return (
        "I am Packetgate: I route requests to tools, and ask before anything changes. "
        f"Some of my {len(catalogue)} tools:\n" + "\n".join(lines) + f"{more}\n\n"
        f"{say} a call, such as `{call}`; `/help` lists them. Tools that change things: {hints.write}. "
        f"Commands: {hints.execute}."
    )


def call_outcome(call: ToolCall, packet: CognitionPacket) -> tuple[str, str]:
    """Return the outcome of a call in words, and its output if it has one; long output is cut. Blocking."""
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
