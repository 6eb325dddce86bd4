"""Decide without a model and without plug-ins: typed calls, and the plainest reads. Everything else needs a model."""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from packetgate.deciders.intent import intent_decision
from packetgate.deciders.plain_answer import answer_without_tools, plain_answer
from packetgate.deciders.protocols import Answer, Deciders, IntentDecision, Review, SelectedCall, Selection
from packetgate.gate.confidence import CallReview
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.reading import is_small_talk
from packetgate.tools.text.words import words_of

TYPED = "you typed this call"
PLAIN_READ = "the request only asks to read this"
NO_MODEL = (
    "This needs a language model, and none is configured: `packetgate init` finds one, or name one with --lite and"
    " --prime. `pip install 'packetgate[reflex]'` adds rules that read simple requests without a model. Without both,"
    " type a call, such as `/ai.read path=README.md`, or `read README.md`."
)
NO_ANSWER = "The language model gave no usable answer, and nothing else can read this request."
_BUILT_IN_READ = "ai.read"
_TYPED = re.compile(r"/(?P<tool>[\w.:-]*\w)(?P<rest>\s.*)?", re.DOTALL)
_ARGUMENT = re.compile(
    r"""\s*(?P<name>[A-Za-z_][\w.-]*)=(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<bare>\S*))(?=\s|$)"""
)
_READ = re.compile(
    r"(?:please\s+)?(?:read|show|open|print|display|view|cat|list|ls)(?:\s+me)?(?:\s+(?:the|file|folder|contents?\s+of))*"
    r"\s+[`\"']?(?P<path>[^\s`\"']*[\w/])[`\"']?(?:,?\s+please)?[.!]?",
    re.IGNORECASE,
)
_PATH_NAMES = ("path", "file", "filename", "file_path", "filepath")


def plain_deciders(*, beside_model: bool = False) -> Deciders:
    """Return the deciders that need neither a model nor a plug-in; beside a model, they stand in where it fails."""
    respond = partial(respond_plainly, beside_model=beside_model)
    return Deciders(detect_plainly, select_plainly, review_plainly, respond)


async def detect_plainly(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Return that a tool is needed if the request is a typed call or a plain read that was not made yet."""
    request = packet.content.original_prompt
    if packet.tool_routing is not None:
        return intent_decision(False, request, packet.intent.access, "the request is done")
    call, catalogue = None, Catalogue()
    if not is_small_talk(request):
        catalogue = await toolbox.catalogue()
        call = requested_call(request, catalogue)
    if call is None:
        return intent_decision(False, request, Access.READ, "neither a typed call nor a plain read")
    risk = catalogue[call.tool_name].risk
    access = {Risk.READ: Access.READ, Risk.WRITE: Access.WRITE}.get(risk, Access.EXECUTE)
    return intent_decision(True, request, access, call.reasoning)


async def select_plainly(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Return the call of a typed call or of a plain read; otherwise none."""
    call = requested_call(packet.content.original_prompt, catalogue)
    if call is None:
        return Selection(action="none", needs_tool=False, confidence=1.0, decided_by="reflex")
    return Selection(
        action="call", calls=(call,), complete=True, confidence=1.0, reasoning=call.reasoning, decided_by="reflex"
    )


async def review_plainly(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Approve what the request says word for word. Of any other call nothing is known, so that the user is asked."""
    requested = requested_call(packet.content.original_prompt, catalogue)
    reviews = tuple(_review(call, requested) for call in packet.routing.calls)
    return Review(reviews=reviews, decided_by="reflex")


async def respond_plainly(
    packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext, *, beside_model: bool = False
) -> Answer:
    """Return each call's result, and why other calls did not run; without a call, what can be typed."""
    request = packet.content.original_prompt

    def without_calls() -> str:
        return answer_without_tools(request, catalogue, NO_ANSWER if beside_model else NO_MODEL)

    return await asyncio.to_thread(plain_answer, packet, without_calls)


def requested_call(request: str, catalogue: Catalogue) -> SelectedCall | None:
    """Return the call that a request consists of: `/tool name=value ...`, or a plain read such as `read README.md`."""
    if match := _TYPED.fullmatch(request.strip()):
        name = catalogue.canonical(match["tool"])
        params = _arguments(match["rest"] or "", catalogue[name]) if name else None
        return None if name is None or params is None else SelectedCall(tool_name=name, params=params, reasoning=TYPED)
    match = _READ.fullmatch(request.strip())
    reader = _reader(catalogue) if match else None
    if match is None or reader is None:
        return None
    return SelectedCall(tool_name=reader.name, params={reader.required[0]: match["path"]}, reasoning=PLAIN_READ)


def _arguments(text: str, spec: ToolSpec) -> dict[str, Any] | None:
    """Return the arguments in a text; a text without names is the value of the only required one. None: unreadable."""
    params, position = dict[str, Any](), 0
    while match := _ARGUMENT.match(text, position):
        double = match["double"]
        value = match["single"] or match["bare"] or "" if double is None else _unescaped(double)
        params[match["name"]] = _structured(value) if match["bare"] else value
        position = match.end()
    if not text[position:].strip():
        return params
    return {spec.required[0]: text.strip()} if len(spec.required) == 1 and not params else None


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text, flags=re.DOTALL)


def _structured(value: str) -> Any:
    """Return a list or an object; another value as it is, because the check of the call converts it."""
    if value[:1] in ("[", "{"):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _reader(catalogue: Catalogue) -> ToolSpec | None:
    """Return the tool that reads a path: the built-in one, or the only one of which that is known."""
    if _BUILT_IN_READ in catalogue:
        return catalogue[_BUILT_IN_READ]
    readers = [spec for spec in catalogue.values() if spec.risk is Risk.READ and _only_needs_path(spec)]
    return readers[0] if len(readers) == 1 else None


def _only_needs_path(spec: ToolSpec) -> bool:
    required: Mapping[str, Any] = {name: spec.parameters.get(name, {}) for name in spec.required}
    return "read" in words_of(spec.upstream_name) and [*required] in [[name] for name in _PATH_NAMES]


def _review(call: ToolCall, requested: SelectedCall | None) -> CallReview:
    if requested is not None and call.tool_name == requested.tool_name and not call.unstated_origins:
        return Review.approving([call], requested.reasoning).reviews[0]
    reason = "no model and no plug-in judges this call"
    return CallReview(call_id=call.call_id, approved=False, confidence=0.0, reasoning=reason)
