"""Needs a tool or not, judged by words."""

import asyncio
import re

from deciders.protocols import IntentDecision
from deciders.reflex.following import request_of
from deciders.reflex.reading import VERBS, access_of, is_question, is_small_talk, mentions_in, steps_in, words_in
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.routing import Risk
from state.sections import Access
from state.transitions import ToolExecutionStatus
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.toolbox import Toolbox
from tools.palette.subject import documents
from tools.text.verbs import READ_VERBS
from tools.text.words import query_terms

COVERAGE = 0.5
"""Share of a request's telling words that a tool must know before the request, without a verb, is about the tool."""

SEARCHES = frozenset("grep lookup query search".split())
RUNS = frozenset("execute launch run".split())
FILE_WORDS = frozenset("code doc docs document documents file files folder folders directory note notes".split())

_ADVICE = re.compile(
    r"^\s*(?:how\s+(?:do|can|could|should|would|to)\b|why\b|what\s+(?:is|are)\s+(?:a|an)\b)", re.IGNORECASE
)


async def detect_by_reflex(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Judge the first step not yet taken; steps follow one another only after success.

    A step needs a tool if it names what only a tool can reach, or if a tool's name is what it talks about.
    """
    request = request_of(packet)
    steps, routing = steps_in(request), packet.tool_routing
    taken = routing.step + 1 if routing else 0
    if taken >= len(steps):
        return _decided(False, request, Access.READ, "every step of the request was taken")
    if routing and any(call.status is not ToolExecutionStatus.EXECUTED for call in routing.step_calls):
        return _decided(False, request, Access.READ, "the last step did not succeed, so none follows it")
    step = steps[taken]
    if taken:
        return _decided(True, step, access_of(step), f"step {taken + 1} of {len(steps)} is still open")
    if is_small_talk(step):
        return _decided(False, request, Access.READ, "small talk")
    needs, why = await asyncio.to_thread(_judge, step, await toolbox.catalogue())
    return _decided(needs, request, access_of(step), why)


def _decided(needs: bool, intent: str, access: Access, why: str) -> IntentDecision:
    return IntentDecision(
        needs_tool=needs,
        user_intent=" ".join(intent.split())[:200],
        access=access,
        reasoning=why,
        decided_by="reflex",
    )


def _judge(step: str, catalogue: Catalogue) -> tuple[bool, str]:
    """Return (needs a tool, why)."""
    if not catalogue:
        return False, "no tools are connected"
    if mentions_in(step).has_target:
        return True, "it names a file, an address or a command"
    hits = catalogue.ranking.rank(step, limit=5)
    pages = [hit.name for hit in hits if documents(catalogue[hit.name], hit, step)]
    if is_question(step) and pages:
        return True, f"it asks about what {pages[0]} documents"
    if _ADVICE.match(step):
        return False, "it asks for advice, not for something to be done"
    terms = query_terms(step)
    if not hits or not terms:
        return False, "no tool knows any of its words"
    known = len(hits[0].terms) / len(terms)
    lead = set(words_in(step)[:3])
    if lead & SEARCHES or ("find" in lead and set(words_in(step)) & FILE_WORDS):
        return True, "it asks to search"
    can_run = any(spec.risk is Risk.EXECUTE for spec in catalogue.values())
    if can_run and RUNS & set(words_in(step)[:1]):
        return True, "it asks to run something"
    leads_with_verb = bool(lead & (VERBS | READ_VERBS))
    if hits[0].name_terms and (leads_with_verb or known >= COVERAGE):
        return True, f"it talks about what {hits[0].name} does"
    return False, f"the nearest tool, {hits[0].name}, knows too little of its words"
