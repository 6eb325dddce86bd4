"""Generate requests from the schemas of real tools, so that the encoder learns to find values for many names.

A request phrases the tool's description as a wish, with random typed values in varied phrasings. It may lack required
values and contain unrelated numbers and names.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.train.judging.examples import Example, Span, Tool
from benchmarks.train.judging.values import CITIES, DAYS, FIRST, value_of
from packetgate.tools.text.words import STOP_WORDS, words_of

_LEADS = [
    *["", "", "", "", "Please ", "please ", "Can you ", "Could you ", "I want to ", "I need to ", "I'd like to "],
    *["Help me ", "Hey, ", "Would you ", "We have to ", "Let's ", "can u ", "Now ", "I would like you to "],
]
_BY_THE_WAY = [
    "I have {n} of them already.", "My friend {p} told me about it.", "I am in {c} right now.", "It is for {p}.",
    "We are {n} people here.", "I'm leaving on {d}.", "{p} and I need it.", "I've tried {n} times.", "Thanks!",
    "That is all.", "Since {d} nothing works.", "This is for a project in {c}.", "No hurry.",
]  # fmt: skip
_INSTEAD = {
    "get": "retrieve fetch show give find look-up see check".split(),
    "list": "show enumerate display see".split(),
    "create": "make add set-up open start".split(),
    "search": "look find hunt query".split(),
    "delete": "remove drop erase get-rid-of".split(),
    "update": "change edit modify set".split(),
    "calculate": "compute work-out determine figure-out".split(),
    "send": "deliver submit post".split(),
    "generate": "make create produce".split(),
    "add": "put insert append include".split(),
    "check": "verify see test find-out".split(),
}
_SAME = {other: word for word, others in _INSTEAD.items() for other in others}
_OPPOSITE = {
    "get": ["delete", "update", "create", "send"], "list": ["create", "delete"], "create": ["delete", "list", "get"],
    "search": ["create", "delete"], "delete": ["create", "get", "restore"], "update": ["get", "delete", "list"],
    "add": ["remove", "list"], "remove": ["add", "list"], "send": ["list", "delete"], "start": ["stop"],
    "stop": ["start"], "open": ["close"], "close": ["open"], "read": ["write", "delete"], "write": ["read"],
    "enable": ["disable"], "disable": ["enable"], "upload": ["download"], "download": ["upload"],
    "generate": ["delete", "list"], "fetch": ["delete", "create"], "retrieve": ["delete", "update"],
}  # fmt: skip
_UNITS = "units meters km percent years days minutes hours kg dollars degrees pixels items people times points".split()
_PLACES = {"city", "location", "place", "country", "region", "area", "town"}
_DATES = {"date", "day"}
_TIMES = {"time"}
_COUNTS = {"limit", "count", "max", "num", "top", "size"}
_NAMES = {"name", "title", "label"}
_OF_PEOPLE = {"user", "username", "author", "owner", "recipient", "to", "email"}


class Synthesis:
    """Generates requests for the tools of a catalogue."""

    def __init__(self, tools: Sequence[Tool], rng: random.Random) -> None:
        self._rng = rng
        self._texts = [tool.full for tool in tools if tool.full]

    def phrase(self) -> str:
        """Return two to four neighbouring words of a random tool's description."""
        for _ in range(20):
            words = re.findall(r"[A-Za-z][A-Za-z-]+", self._rng.choice(self._texts)[:300])
            length = self._rng.choice([1, 2, 2, 3, 3, 4])
            if len(words) > length:
                at = self._rng.randrange(len(words) - length)
                found = words[at : at + length]
                if found[0].lower() not in STOP_WORDS and found[-1].lower() not in STOP_WORDS:
                    return " ".join(found).lower() if self._rng.random() < 0.8 else " ".join(found)
        return "quarterly report"

    def request(self, tool: Tool) -> tuple[str, dict[str, Span]] | None:
        """Return a request for the tool, and the positions of its values; None if the description is too short."""
        rng = self._rng
        action = _action(tool, rng)
        if not action:
            return None
        given = {}
        for name, schema in tool.parameters.items():
            if rng.random() < (0.88 if name in tool.required else 0.35):
                value = (
                    _switched(name, rng)
                    if schema.get("type") == "boolean"
                    else value_of(name, schema, rng, self.phrase)
                )
                if value:
                    given[name] = value
        pieces = self._pieces(action, tool, given)
        return _written(pieces, tool, given)

    def _pieces(self, action: str, tool: Tool, given: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the request as pieces of text, each with its parameter, if any."""
        rng = self._rng
        left = list(given)
        rng.shuffle(left)
        head: list[tuple[str, str]] = [(action, "")]
        for name in list(left):
            spot = _mention(action, name)
            if spot and len(head) == 1 and rng.random() < 0.6:
                head = [(action[: spot[0]], ""), (given[name], name), (action[spot[1] :], "")]
                left.remove(name)
        before: list[tuple[str, str]] = []
        after: list[tuple[str, str]] = []
        style = rng.random()
        for number, name in enumerate(left):
            if style < 0.15:
                before += [*self._phrase(name, given[name], tool), (" ", "")]
            elif style < 0.3:
                after += [(". " if number == 0 else " ", ""), *self._phrase(name, given[name], tool)]
            elif style < 0.4:
                after += [(rng.choice([", ", "; ", "\n"]) if number else ". ", "")]
                after += [(_said(name) + rng.choice([": ", " = ", " "]), ""), (given[name], name)]
            else:
                joint = " " if number == 0 or rng.random() < 0.4 else rng.choice([", ", " and ", ", and "])
                after += [(joint, ""), *self._phrased(name, given[name], tool)]
        lead = rng.choice(_LEADS)
        pieces = [*before, (lead, ""), *head, *after]
        end = rng.choice(["", ".", ".", "?" if lead.lower().startswith(("can", "could", "would")) else "."])
        pieces.append((end, ""))
        if rng.random() < 0.3:
            aside = self._aside()
            pieces = [*pieces, (" " + aside, "")] if rng.random() < 0.6 and end else [(aside + " ", ""), *pieces]
        return pieces

    def _aside(self) -> str:
        rng = self._rng
        said = {"n": str(rng.randint(2, 40)), "p": rng.choice(FIRST), "c": rng.choice(CITIES), "d": rng.choice(DAYS)}
        return rng.choice(_BY_THE_WAY).format(**said)

    def _phrase(self, name: str, value: str, tool: Tool) -> list[tuple[str, str]]:
        if tool.parameters[name].get("type") == "boolean":
            return [(value[:1].upper() + value[1:], name), (".", "")]
        said = _said(name)
        start, end = self._rng.choice(
            [(f"The {said} is ", "."), (f"My {said} is ", "."), ("Use ", f" as the {said}."), (f"{said}: ", "."),
             (f"Set the {said} to ", "."), (f"I have the {said} ", "."), (f"For the {said} take ", ".")]
        )  # fmt: skip
        return [(start, ""), (value, name), (end, "")]

    def _phrased(self, name: str, value: str, tool: Tool) -> list[tuple[str, str]]:
        rng, words, said = self._rng, set(words_of(name)), _said(name)
        kind = tool.parameters[name].get("type")
        if kind == "boolean":
            return [(value, name)]
        named = [
            (f"with the {said} ", ""), (f"with {said} ", ""), (f"with a {said} of ", ""), (f"for {said} ", ""),
            (f"using {said} ", ""), (f"where {said} is ", ""), (f"and {said} ", ""), ("with ", f" as the {said}"),
            ("using ", f" as {said}"), (f"whose {said} is ", ""), (f"by {said} ", ""), (f"{said} ", ""),
            ("for the ", f" {said}"), (f"set {said} to ", ""), (f"({said}: ", ")"), (f"having {said} ", ""),
        ]  # fmt: skip
        plain: list[tuple[str, str]] = [("for ", "")]
        bare = plain
        if words & _PLACES:
            bare = [("in ", ""), ("for ", ""), ("near ", ""), ("around ", "")]
        if words & (_DATES | _TIMES):
            bare = [("on ", ""), ("for ", ""), ("at ", ""), ("", "")]
        if words & {"start", "from", "origin", "since", "source", "begin"}:
            bare = [("from ", ""), ("starting ", ""), ("between ", ""), ("since ", "")]
        if words & {"end", "to", "until", "destination", "target"}:
            bare = [("to ", ""), ("until ", ""), ("and ", ""), ("into ", "")]
        if words & _COUNTS:
            bare = [("at most ", ""), ("", " results"), ("the first ", ""), ("only ", " of them"), ("top ", "")]
        if words & _NAMES:
            bare = [("called ", ""), ("named ", ""), ("titled ", ""), ("", "")]
        if words & _OF_PEOPLE:
            bare = [("for ", ""), ("to ", ""), ("by ", ""), ("of ", "")]
        if words & {"query", "search", "keyword", "keywords", "topic", "term", "prompt", "question"}:
            bare = [("about ", ""), ("for ", ""), ("on ", ""), ("regarding ", ""), ("matching ", ""), (": ", "")]
        if words & {"content", "text", "message", "body", "description"}:
            bare = [("saying ", ""), (": ", ""), ("that says ", ""), ("with the words ", ""), ("containing ", "")]
        start, end = rng.choice(bare if rng.random() < (0.2 if bare is plain else 0.5) else named)
        if str(kind) in {"integer", "number", "float"} and not end and rng.random() < 0.3:
            end = " " + rng.choice(_UNITS)
        return [(start, ""), (value, name), (end, "")]


def synthetic_requests(
    tools: Sequence[Tool], count: int, rng: random.Random
) -> Iterator[tuple[Tool, str, dict[str, Span], list[Tool]]]:
    """Yield (tool, request, spans of its arguments, other tools of its server) of at most `count` requests."""
    by_server: dict[str, list[Tool]] = {}
    for tool in tools:
        by_server.setdefault(tool.server, []).append(tool)
    making = Synthesis(tools, rng)
    for _ in range(count):
        tool = rng.choice(tools)
        if made := making.request(tool):
            yield tool, *made, [one for one in by_server[tool.server] if one is not tool and differs(one, tool)]


def synthesised(tools: Sequence[Tool], count: int, rng: random.Random) -> Iterator[Example]:
    """Yield requests for tools with all spans, and the same requests with tools for other actions."""
    for tool, request, spans, near in synthetic_requests(tools, count, rng):
        yield Example("synthesis", request, renamed(tool.varied(rng), rng), 1.0, spans, weight=0.5)
        if near and rng.random() < 0.45:
            yield Example("synthesis", request, rng.choice(near).varied(rng), 0.0, weight=0.5)
        if rng.random() < 0.25:
            other = opposite_of(tool, rng)
            if other:
                yield Example("synthesis", request, other.varied(rng), 0.0, weight=0.7)


def renamed(tool: Tool, rng: random.Random) -> Tool:
    """Return the tool with a shorter definition, like tools of some real servers; parameters keep their names."""
    said = tool.full
    parts: dict[str, dict[str, Any]] = {}
    for name, schema in tool.parameters.items():
        kept = dict(schema)
        if rng.random() < 0.25:
            kept.pop("description", None)
        parts[name] = kept
    if rng.random() < 0.15:
        said = said.split(". ")[0]
    return Tool(tool.upstream_name, said, tool.server, parts, tool.required)


def opposite_of(tool: Tool, rng: random.Random) -> Tool | None:
    """Return a tool for the opposite action on the same object."""
    words = words_of(tool.upstream_name)
    verb = next((word for word in words if word in _OPPOSITE), None)
    if verb is None:
        return None
    other = rng.choice(_OPPOSITE[verb])
    name = "_".join(other if word == verb else word for word in words)
    rest = re.sub(r"^\W*\w+\s*", "", tool.full.split(". ")[0], count=1)
    return Tool(name, f"{other.capitalize()} {rest}", tool.server, tool.parameters, tool.required)


def differs(one: Tool, other: Tool) -> bool:
    """Return whether two tools have few words in common."""
    first, second = set(words_of(one.text)) - STOP_WORDS, set(words_of(other.text)) - STOP_WORDS
    return len(first & second) < 0.6 * min(len(first), len(second), 30)


def _action(tool: Tool, rng: random.Random) -> str:
    """Return the tool's action as a wish, from the first words of its description or name."""
    said = re.split(r"(?<=[a-z)])[.:;\n]|\s[-\u2013(]", tool.full.strip())[0].strip(" *#`")
    words = said.split()
    if not 2 <= len(words) <= 25 or (rng.random() < 0.2 and len(words_of(tool.upstream_name)) > 1):
        words = words_of(tool.upstream_name)
    if len(words) < 2:
        return ""
    verb = _plain(words[0].lower())
    family = _SAME.get(verb, verb)
    if family in _INSTEAD and rng.random() < 0.6:
        verb = rng.choice([family, *_INSTEAD[family]]).replace("-", " ")
    rest = words[1:]
    if len(rest) > 9 and rng.random() < 0.6:
        rest = rest[: rng.randint(5, 9)]
        while rest and rest[-1].lower().strip(",") in STOP_WORDS | {"using", "based", "including"}:
            rest.pop()
    if rng.random() < 0.3:
        rest = [word for word in rest if rng.random() < 0.85]
    return " ".join([verb, *rest]).rstrip(",.")


def _plain(verb: str) -> str:
    """Return the infinitive of a verb: `retrieve` for `retrieves`."""
    if verb.endswith(("ches", "shes")):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith(("ss", "us", "is")) else verb


def _mention(action: str, name: str) -> tuple[int, int] | None:
    """Return the position of a general mention of a parameter, such as `a city` or `the specified user`."""
    noun = _said(name).split()[-1]
    if len(noun) < 3:
        return None
    match = re.search(
        rf"\b(?:an?|the|this|that|any|your)?\s*(?:specific|specified|given|single|certain|particular)?\s*"
        rf"{re.escape(noun)}s?\b(?!\w)",
        action,
        re.IGNORECASE,
    )
    if match is None or match.start() == 0:
        return None
    start = match.start() + (len(match[0]) - len(match[0].lstrip()))
    return start, match.end()


def _said(name: str) -> str:
    return " ".join(words_of(name)) or name


def _switched(name: str, rng: random.Random) -> str:
    said = re.sub(r"^(?:is|has|should|enable|include|show|use|with) ", "", _said(name))
    return rng.choice(
        [f"with {said}", f"without {said}", f"include {said}", f"no {said}", f"don't use {said}", f"{said} on"]
    )


def _written(
    pieces: Sequence[tuple[str, str]], tool: Tool, given: Mapping[str, str]
) -> tuple[str, dict[str, Span]] | None:
    """Return the text of the pieces, and the spans of the values without their quotes."""
    text = ""
    spans: dict[str, Span] = {name: None for name in tool.parameters if name not in given}
    for words, name in pieces:
        written = words if text else words.lstrip()
        if name:
            inner = written.strip("\"'“”`")
            at = len(text) + written.index(inner)
            spans[name] = (at, at + len(inner)) if inner else None
        text += written
    if len(text) < 12:
        return None
    return (text, spans)
