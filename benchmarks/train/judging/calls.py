"""Generate right and wrong calls for requests, from which the judge learns whether a call is right.

The right calls come from the training sources. The wrong calls contain the errors of models and rules: a similar tool;
a value that is cut off, too long, swapped, invented or a pronoun; an unrequested or missing argument; another number,
choice or day; or a call that the request declines or specifies too little.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ranking.data import tool_spec
from benchmarks.selection.cases import drawn, public_sets
from benchmarks.train.data import held_out, rows
from benchmarks.train.filling.examples import own, sealtools
from benchmarks.train.judging.examples import Tool, labelled, of_snips
from benchmarks.train.judging.synthesis import Synthesis, opposite_of, renamed, synthetic_requests
from benchmarks.train.judging.values import NUMBER_WORDS, value_of
from benchmarks.train.own import catalogues
from packetgate.ranking.bm25 import Lexical
from packetgate.reflex.judge.calls import pieces_of, with_earlier
from packetgate.reflex.judge.judge import tool_headline
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.values import leaves
from packetgate.tools.text.words import words_of

SEED = 20
UNKNOWN = 2
"""Packed label of an argument that is neither known to be right (0) nor to be wrong (1)."""
MEASURED = 100
"""Number of cases of each BFCL set that only measurements use."""
_PRONOUNS = "it this that them these one something everything here there me my file text name".split()
_MADE_UP = [
    "example", "test", "default", "all", "none", "general", "user123", "John Doe", "user@example.com", "New York",
    "2023-10-01", "/path/to/file", "file.txt", "string", "sample text", "https://example.com", "12345", "en", "N/A",
    "", "unknown", "Hello", "<path>", "your_file.txt", "main", "null", "docs/plan.md", "contents", "result", "1",
]  # fmt: skip
_REFUSALS = [
    "Do not {0}", "Don't {0}", "Please don't {0}", "don't {0} yet", "Never {0}", "You must not {0}",
    "What happens if I {0}?", "I already did this: {0}", "Why would one {0}?", "How does one {0}?",
]  # fmt: skip
_DEFAULT = re.compile(r"(?i)\bdefault(?:s|ing)?(?: value)?(?: is| to| of|:)?:? ['\"`]?([\w/%-]+)")
_MONTHS = "january february march april may june july august september october november december".split()
_CALLED = {
    "new york": ["New York, NY", "New York City", "NYC"], "los angeles": ["Los Angeles, CA", "LA"],
    "san francisco": ["San Francisco, CA"], "chicago": ["Chicago, IL"], "boston": ["Boston, MA"],
    "seattle": ["Seattle, WA"], "miami": ["Miami, FL"], "paris": ["Paris, France"], "london": ["London, UK"],
    "berlin": ["Berlin, Germany"], "tokyo": ["Tokyo, Japan"], "rome": ["Rome, Italy"], "madrid": ["Madrid, Spain"],
    "germany": ["DE"], "france": ["FR"], "japan": ["JP"], "united states": ["US", "USA"], "spain": ["ES"],
    "united kingdom": ["UK", "GB"], "english": ["en"], "german": ["de"], "french": ["fr"], "spanish": ["es"],
    "chinese": ["zh"], "japanese": ["ja"], "italian": ["it"], "dollars": ["USD"], "euros": ["EUR"], "pounds": ["GBP"],
    "yen": ["JPY"], "usd": ["dollars"], "tesla": ["TSLA"], "austin": ["Austin, TX"], "toronto": ["Toronto, Canada"],
}  # fmt: skip
_REFERENCES = [
    "it", "it", "it", "that", "this", "them", "that one", "this one", "the same", "the same one", "that {0}",
    "this {0}", "the {0}", "the same {0}", "the first one", "the second one", "the third", "the last one",
    "the other one", "again",
]  # fmt: skip
_BEFORE_REFERENCE = re.compile(r"(?i)(?:\b(?:an?|the|my|our) )?[\"'`]*$")
_QUOTE = re.compile(r"^[\"'`]+")
_ELLIPSES = [
    "and {0}", "and {0}?", "and in {0}", "and for {0}?", "what about {0}?", "how about {0}", "now {0}", "no, {0}",
    "the same for {0}", "same with {0}", "{0} too", "then {0}", "with {0}", "and of {0}", "try {0}",
]  # fmt: skip
_SMALL_TALK = frozenset(
    "greeting goodbye thank_you are_you_a_bot what_is_your_name who_made_you how_old_are_you tell_joke yes no maybe "
    "what_are_your_hobbies where_are_you_from meaning_of_life what_can_i_ask_you do_you_have_pets fun_fact "
    "who_do_you_work_for".split()
)
"""Intents of CLINC150 for which our own catalogues have no tool."""
_JOINTS = [" and then ", ". Then ", ", and ", ". After that ", "; ", " and also ", "\n", " and "]


class Example(NamedTuple):
    """A request, a call, and whether it is right."""

    source: str
    request: str
    tool: ToolSpec
    params: Mapping[str, Any]
    right: bool
    weight: float = 1.0
    wrong: frozenset[str] | None = None
    """The parameters with a wrong or missing argument; None if unknown."""


class Right(NamedTuple):
    """A right call, the other tools, and the words of the request that fill each parameter, if known."""

    source: str
    request: str
    tool: ToolSpec
    params: Mapping[str, Any]
    others: Sequence[ToolSpec]
    weight: float = 1.0


def examples(data: Path, rng: random.Random, share: float = 1.0) -> Iterator[Example]:
    """Yield the examples of all sources."""
    catalogue = [Tool.of(row) for row in rows(data / "toucan_mcp_catalog" / "tools.jsonl")]
    catalogue = [tool for tool in catalogue if tool.full and tool.full.isascii()]
    typed = [tool for one in labelled(data) if one.source == "sealtools" for tool in one.tools.values()]
    mutator = Mutator(rng, Synthesis(catalogue, rng))
    for right, times in (
        *((one, 14) for one in _own()),
        *((one, 7) for one in _sealtools(data, rng)),
        *((one, 2) for one in _snips(data, rng)),
        *((one, 1) for one in _bfcl(data, rng, int(14 * share) or 1)),
        *((one, 1) for one in _synthesised(catalogue, int(90_000 * share), rng)),
        *((one, 1) for one in _synthesised(typed, int(40_000 * share), rng)),
    ):
        for _ in range(times):
            if times == 1 or rng.random() < share:
                yield from mutator.examples(right)
    yield from _follow_ups(data, rng, mutator, share)
    yield from _needless(rng, mutator)
    yield from _without_arguments(data, rng)


def shuffled_examples(data: Path, share: float = 1.0) -> list[Example]:
    """Return all examples in random order."""
    found = [*examples(data, random.Random(SEED), share)]
    random.Random(SEED).shuffle(found)
    return found


def _own() -> Iterator[Right]:
    beside: dict[str, list[ToolSpec]] = {}
    for one in catalogues():
        for spec in one.tools.values():
            beside.setdefault(spec.name, []).extend(other for other in one.tools.values() if other.name != spec.name)
    every = [*own()]
    alone = [asked.tool for asked in every if asked.tool.name not in beside]
    for asked in every:
        yield Right("own", asked.request, asked.tool, asked.arguments, beside.get(asked.tool.name, alone), 1.0)


def _sealtools(data: Path, rng: random.Random) -> Iterator[Right]:
    every = [one for one in sealtools(data, held=False) if one.weight == 1]
    tools = [Tool.of(row) for row in rows(data / "sealtools" / "tools.jsonl") if not held_out("sealtools", row["id"])]
    known = {tool.upstream_name: _spec(tool) for tool in tools}
    index = Lexical([*known.values()])
    for one in every:
        near = [hit.name for hit in index.rank(one.request, 12)]
        others = [known[name] for name in near if name != one.tool.name]
        yield Right("sealtools", one.request, one.tool, one.arguments, others or [rng.choice([*known.values()])])


def _snips(data: Path, rng: random.Random) -> Iterator[Right]:
    found = [*of_snips(data, rng)]
    tools = [one.tool for one in found if one.fits]
    for one in found:
        if not one.fits:
            yield Right("snips no", one.request, _spec(one.tool), _typed_params(one.tool, one.request, one.spans), ())
            continue
        others = [_spec(rng.choice(tools)) for _ in range(2)]
        others = [other for other in others if other.name != one.tool.upstream_name]
        params = _typed_params(one.tool, one.request, one.spans)
        yield Right("snips", one.request, _spec(one.tool), params, others, 0.7)


def _bfcl(data: Path, rng: random.Random, times: int) -> Iterator[Right]:
    """Yield BFCL's calls, except the measured cases and calls to their tools."""
    sets = public_sets(data)
    for name in ("simple_python", "multiple", "live_simple", "live_multiple"):
        cases = drawn(sets[f"bfcl {name}"](), 100_000)
        measured = {one.name for case in cases[:MEASURED] for one in case.expected}
        for case in cases[MEASURED:]:
            specs = {tool.spec.name: tool.spec for tool in case.tools}
            (expected,) = case.expected if len(case.expected) == 1 else (None,)
            if (
                expected is None
                or expected.arguments is None
                or expected.name not in specs
                or expected.name in measured
            ):
                continue
            others = [spec for other, spec in specs.items() if other != expected.name]
            for _ in range(times):
                params = _drawn_params(expected.arguments, rng)
                yield Right("bfcl", case.query, specs[expected.name], params, others, 0.8)


def _drawn_params(allowed: Mapping[str, Sequence[Any]], rng: random.Random) -> dict[str, Any]:
    """Return allowed values, and sometimes an optional argument."""
    found = {}
    for name, listed in allowed.items():
        values = listed if isinstance(listed, list) else [listed]
        real = [one for one in values if one != ""]
        if real and not (len(real) < len(values) and rng.random() < 0.6):
            value = rng.choice(real)
            found[name] = _drawn_params(value, rng) if isinstance(value, dict) else value
    return {name: value for name, value in found.items() if value is not None}


def _synthesised(tools: Sequence[Tool], count: int, rng: random.Random) -> Iterator[Right]:
    for tool, request, spans, near in synthetic_requests(tools, count, rng):
        shown = renamed(tool.varied(rng), rng)
        others = [_spec(one.varied(rng)) for one in rng.sample(near, min(2, len(near)))]
        opposite = opposite_of(tool, rng)
        others += [_spec(opposite.varied(rng))] if opposite else []
        params = _typed_params(shown, request, spans)
        source = "synthesis" if all(name in params for name in shown.required) else "synthesis lacking"
        yield Right(source, request, _spec(shown), params, others, 0.5)


def _follow_ups(data: Path, rng: random.Random, mutator: "Mutator", share: float) -> Iterator[Example]:
    """Yield requests followed by values of earlier turns, in the judge's input form, and calls with these values."""
    said = [row["query"] for row in rows(data / "clinc150" / "train.jsonl") if row["intent"] in _SMALL_TALK]
    alike: dict[str, list[Any]] = {}
    sources = (
        [(one, 6) for one in _own()],
        [(one, 2) for one in _sealtools(data, rng)],
        [(one, 1) for one in _snips(data, rng)],
    )
    for right, times in (pair for source in sources for pair in source):
        for _ in range(times):
            if rng.random() < share and right.source in {"own", "sealtools", "snips"}:
                yield from follow_ups(right, alike, said, rng, mutator)


def follow_ups(
    right: Right, alike: dict[str, list[Any]], said: Sequence[str], rng: random.Random, mutator: "Mutator"
) -> Iterator[Example]:
    """Yield right and wrong follow-ups of a right call.

    Args:
        alike: values of other calls by the parameter's last word. The function adds a value of this call.
        said: messages that need no tool.
    """
    tool, request, weight = right.tool, right.request, right.weight
    found = [(name, value) for name, value in right.params.items() if is_named_once(value, request)]
    small = rng.random() < 0.25 or (not found and rng.random() < 0.5)
    if small:
        params = (
            dict(right.params)
            if rng.random() < 0.7
            else {n: right.params[n] for n in tool.required if n in right.params}
        )
        behind = with_earlier(rng.choice(said), params.values() if rng.random() < 0.6 else ())
        yield Example("follow-up none", behind, tool, params, False, 2 * weight)
    if not found:
        return
    name, value = rng.choice(found)
    kind = (words_of(name) or ["one"])[-1].lower()
    others = [one for one in alike.setdefault(kind, []) if one != value]
    alike[kind] = [*others[-40:], value]
    reference = rng.choice(_REFERENCES).format(rng.choice(["file", "one"]) if kind == "path" else kind)
    before, _, after = request.partition(str(value))
    asked = f"{re.sub(_BEFORE_REFERENCE, '', before)}{reference}{_QUOTE.sub('', after)}"
    if len(found) > 1 and rng.random() < 0.3:
        asked = rng.choice(_ELLIPSES).format(rng.choice([other for one, other in found if one != name]))
        earlier = [one for one in leaf_texts(right.params) if one not in asked]
        yield Example("follow-up", with_earlier(asked, earlier), tool, right.params, True, weight, frozenset())
        return
    yield Example("follow-up", with_earlier(asked, [value]), tool, right.params, True, weight, frozenset())
    way = rng.random()
    if way < 0.35:  # the call does not use the value
        params = {key: one for key, one in right.params.items() if key != name}
        if name in tool.required or rng.random() < 0.3:
            params[name] = mutator.guess(name, tool.parameters.get(name, {}), asked)
        if params.get(name) != value:
            yield Example("follow-up", asked, tool, params, False, weight, frozenset({name}))
    elif way < 0.65 and others:  # an earlier value although the request names another
        other = rng.choice(others)
        if str(other) not in request:
            params = {**right.params, name: other}
            yield Example("follow-up", with_earlier(request, [other]), tool, params, False, weight, frozenset({name}))
    elif right.others:
        another = rng.choice(list(right.others))
        params = mutator.guessed(right.params, another, asked)
        earlier = [one for one in leaf_texts(params) if one == str(value)]
        yield Example("follow-up", with_earlier(asked, earlier), another, params, False, weight)


def is_named_once(value: Any, request: str) -> bool:
    """Return whether a request names a value exactly once and contains other words."""
    text = str(value)
    return (
        isinstance(value, str | int)
        and not isinstance(value, bool)
        and len(text) > 1
        and len(text) < 0.7 * len(request)
        and len(re.findall(rf"(?<!\w){re.escape(text)}(?!\w)", request)) == 1
    )


def leaf_texts(params: Mapping[str, Any]) -> list[str]:
    """Return the texts and numbers in arguments, without booleans."""
    return [str(one.value) for value in params.values() for one in leaves(value, "") if not isinstance(one.value, bool)]


def _needless(rng: random.Random, mutator: "Mutator") -> Iterator[Example]:
    """Yield calls for our own requests that need no tool."""
    for one in catalogues():
        lexical, tools = Lexical(one.tools.values()), [*one.tools]
        for asked in one.requests:
            if not asked.tool:
                near = [hit.name for hit in lexical.rank(asked.text, 3)]
                for name in [*near, *rng.choices(tools, k=3)]:
                    for _ in range(3):
                        params = mutator.guessed({}, one.tools[name], asked.text)
                        yield Example("own needless", asked.text, one.tools[name], params, False)


def _without_arguments(data: Path, rng: random.Random) -> Iterator[Example]:
    """Yield tools without parameters that fit a request, and similar tools that do not fit."""
    for source in labelled(data):
        if source.source == "sealtools":
            continue
        tools = {name: _spec(replace(tool, parameters={}, required=())) for name, tool in source.tools.items()}
        lexical = Lexical([*tools.values()])
        key = {spec.name: name for name, spec in tools.items()}
        for request, gold in rng.sample(list(source.requests), min(6_000, len(source.requests))):
            known = sorted(gold & tools.keys())
            if known:
                yield Example(source.source, request, tools[rng.choice(known)], {}, True, 0.5)
            near = [key[hit.name] for hit in lexical.rank(request, 8)]
            near = [name for name in near if name not in gold]
            if source.source != "clinc":
                near = near[2:]  # the nearest tools may fit too, because labels are incomplete
            for name in [*rng.sample(near, min(1, len(near))), *rng.sample(sorted(tools), 1)]:
                if name not in gold:
                    yield Example(source.source, request, tools[name], {}, False, 0.5)


class Mutator:
    """Turns right calls into wrong calls."""

    def __init__(self, rng: random.Random, making: Synthesis) -> None:
        self._rng = rng
        self._making = making
        self._last: Right | None = None

    def examples(self, right: Right) -> Iterator[Example]:
        """Yield a right call, unchanged or varied, and wrong calls."""
        rng, source, tool, weight = self._rng, right.source, right.tool, right.weight
        if source in {"synthesis lacking", "snips no"}:
            params = self.guessed(right.params, tool, right.request, optional=0.05)
            yield Example(source, right.request, tool, params, False, weight)
            return
        request, params = right.request, dict(right.params)
        if source != "own" and rng.random() < 0.6:
            params = {name: _otherwise(one, rng) if isinstance(one, str) else one for name, one in params.items()}
        before, self._last = self._last, right
        if before and before.source == source and rng.random() < 0.06:
            pair = [request.rstrip(". "), before.request]
            rng.shuffle(pair)
            request = rng.choice(_JOINTS).join(pair)
        if rng.random() < 0.3:
            for name, schema in tool.parameters.items():
                if name not in params and rng.random() < 0.4 and (default := _default_of(schema)) not in (None, ""):
                    params[name] = default
        yield Example(source, request, tool, params, True, weight, frozenset())
        if source == "own" and rng.random() < 0.15 and re.match(r"[A-Za-z]+ ", request) and not _is_question(request):
            said = rng.choice(_REFUSALS).format(request[:1].lower() + request[1:].rstrip(".!"))
            yield Example("own refused", said, tool, params, False, weight)
        for _ in range(rng.choice([1, 1, 2])):
            other = self._another_tool(right) if right.others and rng.random() < 0.3 else None
            wrong = other or self._mutated(tool, dict(params), request)
            if wrong and not (wrong[0].name == tool.name and _same(wrong[1], params)):
                yield Example(source, request, *wrong, False, weight, None if other else _differing(wrong[1], params))

    def _another_tool(self, right: Right) -> tuple[ToolSpec, dict[str, Any]]:
        tool = self._rng.choice(list(right.others))
        return tool, self.guessed(right.params, tool, right.request)

    def guessed(
        self, params: Mapping[str, Any], tool: ToolSpec, request: str, *, optional: float = 0.15
    ) -> dict[str, Any]:
        """Return arguments for a tool: values with the same or a similar name, and guesses for the rest."""
        found: dict[str, Any] = {}
        left = {name: value for name, value in params.items() if name not in tool.parameters}
        for name, schema in tool.parameters.items():
            if name in params:
                found[name] = params[name]
            elif name in tool.required or self._rng.random() < optional:
                alike = [k for k, value in left.items() if _is_of(value, schema)]
                alike.sort(key=lambda k: -len({*words_of(k)} & {*words_of(name)}))
                if alike and self._rng.random() < 0.7:
                    found[name] = left.pop(alike[0])
                else:
                    found[name] = self.guess(name, schema, request)
        return found

    def guess(self, name: str, schema: Mapping[str, Any], request: str) -> Any:
        """Return a value that a small model might invent."""
        rng = self._rng
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return rng.choice(schema["enum"])
        kind = schema.get("type", "string")
        kind = next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind
        if kind == "boolean":
            return rng.random() < 0.6
        if kind in {"integer", "number", "float"}:
            numbers = [int(one) for one in re.findall(r"\b\d{1,6}\b", request)]
            return rng.choice([*numbers, *numbers, 0, 1, 5, 10, 20, 100, rng.randint(1, 60)])
        if kind == "array":
            item = schema.get("items")
            inner = item if isinstance(item, dict) else {}
            return [self.guess(name, inner, request) for _ in range(rng.choice([0, 1, 1, 2]))]
        if kind == "object":
            parts = schema.get("properties")
            known = [*parts.items()][:3] if isinstance(parts, dict) else []
            return {key: self.guess(key, part, request) for key, part in known if isinstance(part, dict)}
        way = rng.random()
        if way < 0.45:
            return self._words_of(request)
        if way < 0.65:
            return value_of(name, {**schema, "type": "string"}, rng, self._making.phrase) or "example"
        if way < 0.75:
            return rng.choice([name, f"{' '.join(words_of(name))}", f"example_{name}", f"your_{name}", f"<{name}>"])
        return rng.choice(_MADE_UP) if way < 0.93 else rng.choice(_PRONOUNS)

    def _words_of(self, request: str) -> str:
        words = request.split()
        at, size = self._rng.randrange(len(words)), self._rng.choice([1, 1, 2, 2, 3, 4, 6])
        return " ".join(words[at : at + size]).strip(".,?!\"'`:;") or words[0]

    def _mutated(self, tool: ToolSpec, params: dict[str, Any], request: str) -> tuple[ToolSpec, dict[str, Any]] | None:
        rng = self._rng
        optional = [name for name in tool.parameters if name not in tool.required and name not in params]
        dropped = [name for name in params if name not in tool.required]
        ways = ["value"] * 5 * bool(params) + ["swap"] * (len(params) > 1)
        ways += ["more"] * 2 * bool(optional) + ["less"] * 2 * bool(dropped)
        if not ways:
            return None
        way = rng.choice(ways)
        if way == "more":
            for name in rng.sample(optional, min(len(optional), rng.choice([1, 1, 1, 2]))):
                value = self.guess(name, tool.parameters[name], request)
                if value != tool.parameters[name].get("default"):
                    params[name] = value
        elif way == "less":
            del params[rng.choice(dropped)]
        elif way == "swap":
            one, other = rng.sample([*params], 2)
            if type(params[one]) is type(params[other]):
                params[one], params[other] = params[other], params[one]
            else:
                params[one] = self.guess(one, tool.parameters.get(one, {}), request)
        else:
            name = rng.choice([*params])
            params[name] = self._changed(name, params[name], tool.parameters.get(name, {}), request)
        return tool, params

    def _changed(self, name: str, value: Any, schema: Mapping[str, Any], request: str) -> Any:
        rng = self._rng
        if isinstance(schema.get("enum"), list) and len(schema["enum"]) > 1:
            return rng.choice([one for one in schema["enum"] if one != value] or [value])
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            numbers = [int(one) for one in re.findall(r"\b\d{1,6}\b", request) if int(one) != value]
            changed = [
                value + 1,
                value - 1,
                value * 10,
                value + 10,
                value // 10 if abs(value) > 9 else value + 2,
                value / 2,
            ]
            return rng.choice([*changed, *numbers, *numbers])
        if isinstance(value, list) and value:
            way = rng.random()
            if way < 0.4 and len(value) > 1:
                return value[:-1] if rng.random() < 0.5 else value[1:]
            if way < 0.6:
                return [*value, self.guess(name, _items(schema), request)]
            at = rng.randrange(len(value))
            return [*value[:at], self._changed(name, value[at], _items(schema), request), *value[at + 1 :]]
        if isinstance(value, dict) and value:
            key = rng.choice([*value])
            inner = schema.get("properties", {})
            part = inner.get(key, {}) if isinstance(inner, dict) else {}
            return {**value, key: self._changed(key, value[key], part if isinstance(part, dict) else {}, request)}
        if not isinstance(value, str) or not value:
            return self.guess(name, schema, request)
        return self._changed_text(name, value, schema, request)

    def _changed_text(self, name: str, value: str, schema: Mapping[str, Any], request: str) -> Any:
        rng, words = self._rng, value.split()
        before, found, after = request.partition(value)
        ways = ["guess", "guess", "shorter"]
        if found:
            ways += ["longer"] * 2
        if len(words) > 1:
            ways += ["shorter"] * 3
        if re.search(r"\d", value):
            ways += ["digit"] * 2
        if re.search(r"[./\\]", value):
            ways += ["path"] * 2
        way = rng.choice(ways)
        if way == "longer":
            left, right = before.split()[-rng.choice([1, 1, 2, 3]) :], after.split()[: rng.choice([1, 1, 2, 3])]
            longer = [" ".join([*left, value])] * bool(left) + [" ".join([value, *right])] * bool(right)
            return rng.choice(longer).strip("\"'`.,") if longer else f"{value} {request.split(maxsplit=1)[0]}"
        if way == "shorter":
            if len(words) > 1:
                cut = rng.randint(1, len(words) - 1)
                return " ".join(words[cut:] if rng.random() < 0.4 else words[:cut])
            return value[: rng.randint(1, max(1, len(value) - 1))] if len(value) > 2 else rng.choice(_PRONOUNS)
        if way == "digit":
            at = rng.choice([match.start() for match in re.finditer(r"\d", value)])
            return value[:at] + str((int(value[at]) + rng.randint(1, 9)) % 10) + value[at + 1 :]
        if way == "path":
            stem = re.split(r"[/\\]", value.rstrip("/\\"))
            return rng.choice([stem[-1], "/".join(stem[:-1]) or ".", re.sub(r"\.\w+$", "", value), f"{value}.bak", "."])
        return self.guess(name, schema, request)


def _default_of(schema: Mapping[str, Any]) -> Any:
    """Return a parameter's default from its schema or its description."""
    if "default" in schema:
        return schema["default"]
    said = _DEFAULT.search(str(schema.get("description", "")))
    return None if said is None else _typed(said[1], schema)


def _items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    items = schema.get("items")
    return items if isinstance(items, dict) else {}


def _is_question(text: str) -> bool:
    return text.rstrip().endswith("?") or bool(
        re.match(r"(?i)(?:what|who|which|how|where|when|is|are|do|does)\b", text)
    )


def _is_of(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type", "string")
    kind = next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind
    if "enum" in schema:
        return value in schema["enum"] if isinstance(schema["enum"], list) else False
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,), "integer": (int,), "number": (int, float), "float": (int, float), "array": (list,),
    }  # fmt: skip
    return isinstance(value, kinds.get(str(kind), ())) and not isinstance(value, bool)


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    def plain(params: Mapping[str, Any]) -> dict[str, str]:
        return {name: re.sub(r"[\W_]+", "", str(value)).lower() for name, value in params.items()}

    return plain(one) == plain(other)


def _spec(tool: Tool) -> ToolSpec:
    schema = {"type": "object", "properties": dict(tool.parameters), "required": [*tool.required]}
    return tool_spec(tool.upstream_name, tool.full, schema, server=tool.server)


def _typed_params(tool: Tool, request: str, spans: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the arguments with known words to the types of their parameters, and return them."""
    found = {}
    for name, span in spans.items():
        if span and name in tool.parameters:
            value = _typed(request[span[0] : span[1]], tool.parameters[name])
            if value is not None:
                found[name] = value
    return found


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    if isinstance(schema.get("enum"), list):
        plain = re.sub(r"\W+|_", "", text).lower()
        return next((one for one in schema["enum"] if re.sub(r"\W+|_", "", str(one)).lower() == plain), None)
    kind = schema.get("type", "string")
    kind = next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind
    if kind in {"integer", "number", "float"}:
        digits = re.search(r"-?\d[\d,]*(?:\.\d+)?", text)
        if digits:
            number = float(digits[0].replace(",", ""))
            return int(number) if number.is_integer() else (None if kind == "integer" else number)
        words = text.lower().split()
        return NUMBER_WORDS.index(words[0]) + 1 if words and words[0] in NUMBER_WORDS else None
    if kind == "boolean":
        return not re.match(r"(?i)(?:without|no|don't|not)\b", text)
    if kind == "array":
        parts = [one.strip(" '\"[]") for one in re.split(r",\s*(?:and |or )?| and | or ", text.strip("[]"))]
        values = [_typed(one, _items(schema)) for one in parts if one]
        return None if None in values or not values else values
    return text if kind == "string" and text.strip() else None


def _otherwise(text: str, rng: random.Random) -> str:
    """Return another notation of a value: a date or time in digits, another name of a place or language."""
    plain = text.strip().lower()
    if plain in _CALLED:
        return rng.choice(_CALLED[plain])
    day = re.fullmatch(
        r"(?:(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]+)|([a-z]+) (\d{1,2})(?:st|nd|rd|th)?)(?:,? (\d{4}))?", plain
    )
    if day and (month := day[2] or day[3]) in _MONTHS:
        number, year = int(day[1] or day[4]), day[5] or rng.choice(["2023", "2024", "2025", "2026"])
        at = _MONTHS.index(month) + 1
        return rng.choice([f"{year}-{at:02}-{number:02}", f"{year}-{at:02}-{number:02}", f"{at:02}/{number:02}/{year}"])
    time = re.fullmatch(r"(\d{1,2})(?::(\d\d))? ?([ap])\.?m\.?", plain)
    if time:
        return f"{int(time[1]) % 12 + 12 * (time[3] == 'p'):02}:{time[2] or '00'}"
    return text


def packed(every: Sequence[Example], encode: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return examples as arrays: the distinct token pieces, and for each example the indexes of its pieces."""
    known: dict[str, int] = {}
    lines: list[list[int]] = []
    for one in every:
        line = [known.setdefault(text, len(known)) for text in (one.request, tool_headline(one.tool))]
        for piece in pieces_of(one.request, one.tool, one.params):
            value = 0 if piece.value is None else known.setdefault(piece.value, len(known)) + 1
            is_wrong = UNKNOWN if one.wrong is None else int(piece.name in one.wrong)
            line += [known.setdefault(piece.text, len(known)), piece.origin + 10 * is_wrong, value]
        lines.append(line)
    ids = [encoded[:1_000] for encoded in encode([*known])]
    sources = sorted({one.source for one in every})
    return {
        "tokens": np.concatenate([np.array(one, np.uint16) for one in ids]),
        "lengths": np.array([len(one) for one in ids], np.uint16),
        "lines": np.array([value for line in lines for value in line], np.uint32),
        "sizes": np.array([len(line) for line in lines], np.uint16),
        "right": np.array([one.right for one in every], np.bool_),
        "weight": np.array([one.weight for one in every], np.float32),
        "source": np.array([sources.index(one.source) for one in every], np.uint8),
        "sources": np.array(sources),
    }
