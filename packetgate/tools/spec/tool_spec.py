"""One tool, as Packetgate knows it."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from packetgate.state.routing import Risk
from packetgate.tools.policy.rules import Rule
from packetgate.tools.spec.categories import EXTERNAL, CategoryWords, category_of
from packetgate.tools.spec.descriptions import brief_of, listed_name, without_margins
from packetgate.tools.spec.short_schemas import short_schema
from packetgate.tools.text.words import words_in, words_of

_ELSEWHERE = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"})
"""Where a schema may name parameters beside `properties`."""
_PATHS = frozenset("directory file filename filepath folder path paths".split())
MAX_DEPTH = 8
"""How deep a schema is read; a server may nest it without end."""
LINE_WORDS = 20
"""Most words of a tool's line in a prompt."""
ARGUMENTS = "  arguments: "
"""How the line of a prompt begins that says what a tool takes."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool under its canonical name."""

    name: str
    """Canonical: `server.tool`."""
    server: str
    upstream_name: str
    """What the server itself calls it."""
    full: str
    """The server's own description."""
    brief: str
    """At most 100 words, without parameters."""
    input_schema: dict[str, Any]
    """JSON Schema of the arguments, as models and users see it."""
    risk: Risk
    """The worst that it may do; what one call may do is `judge_call` of `packetgate.tools.risk.call` to say."""
    risk_why: tuple[str, ...] = ()
    """Why, in words, the strongest reason first."""
    least_risk: Risk | None = None
    """What any call of it risks at least; below `risk` only where it does what its SQL says. None: as `risk`."""
    risk_holds: bool = False
    """Whether every call is of that risk: of built-in tools, and where the user says that one does more than read."""
    unvouched: bool = False
    """Whether it looks like one that only reads, and counts as more because nothing vouches for that."""
    reaches_outside: bool = False
    """Whether every call of it may reach out of the user's own machine and servers, by its definition."""
    leads_to: Risk | None = None
    """Of a chain: the worst that one of its steps looks like. What it may do itself is `risk`."""
    has_dry_run: bool = False
    """Whether a trusted server's tool can be asked what it would do. The gate sets that argument, nobody else."""
    tags: tuple[str, ...] = ()
    """Labels that its server gives it."""
    given_category: str = ""
    """What it is about, where the user says so."""
    open_world: bool | None = None
    """Whether it reaches out of the user's own servers; None where nobody says so."""
    examples: tuple[str, ...] = ()
    """Requests that it is for."""
    rules: tuple[Rule, ...] = ()
    """What the user's policy says of it."""
    server_about: str = ""
    """What its server says of itself."""
    server_digest: str = ""
    """Of how its server is started or reached."""
    standing: Mapping[str, str] = field(default_factory=dict)
    """Arguments that its server needs and nobody has to give: sent where no other is given."""
    title: str = ""
    """Its name for people, as its server says."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of its structured content, as its server says: for clients of the proxy, and not checked here."""
    idempotent: bool | None = None
    """Whether its server says that a repeated call changes nothing more."""
    meta: dict[str, Any] | None = None
    """Its `_meta`, as its server says."""
    meant: Callable[[dict[str, Any]], dict[str, Any]] | None = field(default=None, compare=False, repr=False)
    """Reads the arguments of a call as they are meant, such as a name as a path; of built-in tools. Blocking."""
    finds: Callable[[dict[str, Any]], bool] | None = field(default=None, compare=False, repr=False)
    """Whether the paths in the arguments of a call lead to something; of built-in tools. Blocking."""
    knows: Callable[[str, str], float] | None = field(default=None, compare=False, repr=False)
    """How surely, from -1 to 1, a word names what is there for a path parameter; of built-in tools. Blocking."""

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def listed_name(self) -> str:
        """The name under which other programs list it."""
        return listed_name(self.server, self.upstream_name)

    @cached_property
    def category(self) -> str:
        """What it is about, such as `images`; empty when its words do not tell."""
        return self.given_category or self.category_by({})

    def category_by(self, own: CategoryWords) -> str:
        """Return what its words say that it is about, the user's own words for categories among them."""
        said = {"name": self.upstream_name, "tags": " ".join(self.tags), "server": self.server, "brief": self.brief}
        return category_of({part: words_in(text) for part, text in said.items()}, own)

    @cached_property
    def takes(self) -> str:
        """What it takes, as models read it: the whole schema of its arguments, in short."""
        return short_schema(self.input_schema)

    @property
    def looks(self) -> Risk:
        """What it looks like, by what was learned too: for what a request is about, never for what may run."""
        if self.leads_to is not None:
            return self.leads_to
        return Risk.READ if self.unvouched and self.risk is Risk.WRITE else self.risk

    @property
    def _named(self) -> str:
        return self.name if self.looks is Risk.READ else f"{self.name} ({self.looks})"

    @cached_property
    def in_brief(self) -> str:
        """Its line in a prompt, without its arguments."""
        return f"- {self._named}: {brief_of(self.brief, LINE_WORDS)}"

    @cached_property
    def in_full(self) -> str:
        """Its text in a prompt, with its arguments."""
        return f"- {self._named}: {without_margins(self.full)}\n{ARGUMENTS}{self.takes}"

    @cached_property
    def digest(self) -> str:
        """Of what it says that a call does, and of its server: an approval holds for the tool as it was then."""
        definition = (self.name, self.server_digest, self.upstream_name, self.full, self.input_schema, self.risk)
        return digest_of([*definition, self.has_dry_run])

    @property
    def is_external(self) -> bool:
        """Whether it reaches out of the user's own servers, such as to the web."""
        return self.category in EXTERNAL if self.open_world is None else self.open_world

    @cached_property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Schema by parameter name; what is required but not described, or not by an object, is unrestricted."""
        properties = self.input_schema.get("properties", {})
        described = properties if isinstance(properties, dict) else {}
        named = {**described, **{name: {} for name in self.required if name not in described}}
        return {name: schema if isinstance(schema, dict) else {} for name, schema in named.items()}

    @cached_property
    def takes_path(self) -> bool:
        """Whether the name of a parameter says that it is the path of a file or a folder."""
        return any(not _PATHS.isdisjoint(words_of(name)) for name in self.parameters)

    @property
    def is_open(self) -> bool:
        """Whether it may take parameters beside those listed: only the schema as a whole tells which."""
        extra = self.input_schema.get("additionalProperties")
        return extra is True or isinstance(extra, dict) or bool(self.input_schema.keys() & _ELSEWHERE)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters that must be given."""
        required = self.input_schema.get("required", ())
        return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list | tuple) else ()

    def signature(self) -> str:
        """Return the parameters in one line: `path (string, required), mode (string)`."""
        parts = [
            f"{name} ({type_name(schema)}{', required' if name in self.required else ''})"
            for name, schema in self.parameters.items()
        ]
        return ", ".join(parts) or "no parameters"


def digest_of(value: Any) -> str:
    """Return the SHA-256 digest of a JSON value, the same whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def type_name(schema: dict[str, Any]) -> str:
    """Return a schema's type in a word or two: `string`, `integer or null`, `any`. What is not a schema is `any`."""
    if isinstance(schema.get("enum"), list):
        return "one of " + ", ".join(map(_word, schema["enum"]))
    if "const" in schema:
        return _word(schema["const"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(str(part) for part in kind)
    if isinstance(kind, str):
        items = schema.get("items")
        return f"array of {type_name(items)}" if kind == "array" and isinstance(items, dict) else kind
    options = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(options, list):
        return "any"
    return " or ".join(type_name(option) for option in options if isinstance(option, dict)) or "any"


def parts_of(schema: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a schema and all within it, each with the name of the parameter or definition that it describes."""
    if depth > MAX_DEPTH or not isinstance(schema, dict):
        return
    yield name, schema
    for kind in ("properties", "$defs"):
        named = schema.get(kind)
        for inner, part in named.items() if isinstance(named, dict) else ():
            yield from parts_of(part if isinstance(part, dict) else {}, inner, depth + 1)
    for kind in ("items", "anyOf", "oneOf", "allOf"):
        parts = schema.get(kind)
        for part in parts if isinstance(parts, list) else [parts]:
            yield from parts_of(part, name, depth + 1)


def _word(value: Any) -> str:
    """Return a value as it stands in a line: one with line breaks as JSON."""
    text = str(value)
    return text if text.isprintable() else json.dumps(text)
