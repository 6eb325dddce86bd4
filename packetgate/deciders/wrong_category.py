"""Detect a tool of another category than the request asks for, and name a better tool."""

import re
from collections.abc import Iterable

from packetgate.ranking.ranking import ranking_of
from packetgate.ranking.subject import ACTION_VERBS, VAGUE, subject_of
from packetgate.state.routing import Correction, Risk
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.categories import TEXT_ART, CategoryWords, categories_in
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.verbs import READ_VERBS
from packetgate.tools.text.words import words_in, words_of

RANKED = 20
"""Number of ranked tools that are searched for a better tool."""

GENERAL_CATEGORIES = frozenset({"web", "files", "commands"})
"""Categories of tools that may serve any request."""

_ANY_CATEGORY = frozenset("create draw find generate get give list make produce render search show write".split())
"""Verbs that occur in tools of all categories."""
_MAKING = frozenset("add compose create draw generate give make new paint produce render write".split())
_LEAD_ENDS = re.compile(
    r"\b(?:about|and|as|at|because|but|by|for|from|if|in|into|near|of|on|or|over|per|so|that|then|to|using|via|where"
    r"|which|with|within|without)\b|[^\w\s'-]",
    re.IGNORECASE,
)
"""End of the words that say what is requested: `Create an image | of a fox`."""
_SEVERAL = re.compile(r"\b(?:also|after|afterwards|and|but|first|then)\b", re.IGNORECASE)
"""Words that join several requests."""


def wrong_category(spec: ToolSpec, request: str, max_risk: Risk, catalogue: Catalogue) -> Correction | None:
    """Return an objection to a tool of the wrong category that names a better tool; None without objection.

    The first words of a request say what is requested. An objection requires three things: these words name one
    category; nothing else in the request supports the tool; and a tool of that category does what is requested, with
    no more risk than `max_risk`. Needed tools that get an objection: none on Seal-Tools, at most 0.4 % on BFCL live,
    MetaTool and LiveMCPBench.
    """
    own = catalogue.preferences.category_words
    lead = words_in(_LEAD_ENDS.split(request.strip(), maxsplit=1)[0])
    wanted = frozenset() if _SEVERAL.search(request) else categories_in(lead, own)
    accepted = subject_of(request, own).categories | GENERAL_CATEGORIES | {""}
    if len(wanted) != 1 or spec.category in accepted or wanted & _categories_of(spec, own):
        return None
    hits = ranking_of(catalogue).rank(request, limit=RANKED)
    named_by = next((hit.name_terms for hit in hits if hit.name == spec.name), frozenset())
    if any(not categories_in([term], own) & wanted for term in named_by - VAGUE - _ANY_CATEGORY):
        return None
    actions = _actions(lead) or {"read"}
    better = [
        one
        for one in (catalogue[hit.name] for hit in hits)
        if one.category in wanted
        and one.apparent_risk.severity <= max_risk.severity
        and _actions(words_of(one.upstream_name)) <= actions
    ]
    if not better:
        return None
    best = min(better, key=lambda one: one.apparent_risk is Risk.READ and max_risk is not Risk.READ)
    message = f"`{spec.name}` is for {spec.category}; for {best.category} there is `{best.name}`."
    return Correction(tool_name=spec.name, problem="wrong_kind", message=message, better_tool=best.name)


def _actions(words: Iterable[str]) -> set[str]:
    verbs = {word for word in words if word in ACTION_VERBS | _MAKING}
    return {"make" if verb in _MAKING else "read" if verb in READ_VERBS else verb for verb in verbs}


def _categories_of(spec: ToolSpec, own: CategoryWords) -> frozenset[str]:
    if spec.category == TEXT_ART:
        return frozenset({TEXT_ART})
    return categories_in(words_in(" ".join([spec.server, spec.upstream_name, spec.full, *spec.tags])), own)
