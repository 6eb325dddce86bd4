"""The definition of a tool."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from packetgate.state.origins import FlowLabel
from packetgate.state.routing import Risk
from packetgate.tools.policy.rules import Rule
from packetgate.tools.spec.categories import EXTERNAL, CategoryWords, category_of
from packetgate.tools.spec.descriptions import brief_of, dedent_description, key_parameter, listed_name
from packetgate.tools.spec.short_schemas import short_schema
from packetgate.tools.text.words import words_in, words_of

_OTHER_PROPERTIES = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"})
"""Keywords with which a schema may accept more properties."""
_PATHS = frozenset("directory file filename filepath folder path paths".split())
TOOL_RESOLUTION = "io.modelcontextprotocol/tool-resolution"
"""The extension of MCP by which a server gives hints on one call before it runs."""
MAX_SCHEMA_DEPTH = 8
"""Deepest part of a schema that is read."""
LINE_WORDS = 20
"""Maximum words of a tool's brief line."""
ARGUMENTS_PREFIX = "  arguments: "
"""Start of the line with a tool's arguments in a prompt."""
_NOT_JUDGED = frozenset(
    "assigned_category brief configured_defaults examples idempotent meta output_schema risk_reasons risk_source rules"
    " server_description tags title undo".split()
)
"""Fields that are not part of a definition: texts for users and models, and settings that are compared elsewhere."""


@dataclass(frozen=True)
class CallHints:
    """A server's hints on one call before it runs: the answer to `tools/resolve`."""

    read_only: bool = False
    open_world: bool = True
    are_trusted: bool = False
    """Whether the user trusts the server. Otherwise the hints can only raise the risk."""
    refusal: str = ""
    """Why the server refuses the arguments; empty if it does not."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool under its canonical name."""

    name: str
    """Canonical: `server.tool`."""
    server: str
    upstream_name: str
    """The server's own name for the tool."""
    full: str
    """The server's description of the tool."""
    brief: str
    """The description in at most 100 words, without parameters."""
    input_schema: dict[str, Any]
    """JSON Schema of the arguments, for models and users."""
    risk: Risk
    """The worst risk of any call; `packetgate.tools.risk.call` rates a single call."""
    risk_reasons: tuple[str, ...] = ()
    risk_source: str = "nobody"
    """Source of the risk: the registry, a trusted server or a setting; `nobody` for a rated risk."""
    least_risk: Risk | None = None
    """Least risk of any call, if it is below `risk`: of a tool that runs SQL, or has `changing_parameters`."""
    changing_parameters: tuple[str, ...] = ()
    """Parameters that make a call change something, such as a path to save to; a call without them has `least_risk`."""
    has_fixed_risk: bool = False
    """Whether every call has exactly this risk."""
    is_unconfirmed_read: bool = False
    """Whether this is an unconfirmed read: it looks like a read, but nothing that the user trusts confirms it."""
    reaches_outside: bool = False
    """Whether any call may reach outside: beyond the user's machine, accounts and own servers."""
    has_dry_run: bool = False
    """Whether a trusted server's tool has a dry-run argument, which only the gate sets."""
    tags: tuple[str, ...] = ()
    assigned_category: str = ""
    """The category from `packetgate.toml`; empty if none."""
    open_world: bool | None = None
    """Whether the tool reaches outside, as its server's hint or `packetgate.toml` states; None if neither does."""
    examples: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    server_description: str = ""
    """The server's description of itself."""
    server_digest: str = ""
    """Digest of how its server is started or reached."""
    server_texts: tuple[str, Mapping[str, Any]] | None = None
    """The server's description and input schema, if `packetgate.toml` overrides them."""
    configured_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values from `packetgate.toml` for arguments that a call omits. They become arguments of the call."""
    default_args: Mapping[str, str] = field(default_factory=dict)
    """Arguments that the server requires, and that are sent if the call omits them."""
    title: str = ""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of its structured content, for clients of the proxy; not checked."""
    idempotent: bool | None = None
    """The server's hint whether a repeated call changes nothing more."""
    meta: dict[str, Any] | None = None
    definition: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """The tool as its server defines it, for clients of the proxy; None if it is not from an MCP server."""
    outward: bool | None = None
    """Whether calls send data outside, as the registry or `packetgate.toml` states; None if neither does."""
    returns_untrusted: bool | None = None
    """Whether the output may contain text that strangers wrote; None if unknown."""
    returns_private: bool | None = None
    """Whether the output may contain the user's private data; None if unknown."""
    hosts: tuple[str, ...] | None = None
    """Patterns of the hosts that calls may name without a question; None if the configuration names none."""
    neighbours: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The server's own names of all its tools; the catalogue fills them in."""
    undo: str = ""
    """The server's tool that undoes a call, and its arguments in words; empty if none is known."""
    resolve_arguments: Callable[[dict[str, Any]], dict[str, Any]] | None = field(
        default=None, compare=False, repr=False
    )
    """Resolves arguments of a built-in tool, such as a name to a path. May block."""
    ask_hints: Callable[[dict[str, Any]], Awaitable[CallHints | None]] | None = field(
        default=None, compare=False, repr=False
    )
    """Asks the server for hints on a call with these arguments; None if the server does not offer that."""
    derived_parameters: tuple[str, ...] = ()
    """The parameters that `resolve_arguments` fills in from Packetgate's own records; nobody needs to state them."""
    paths_exist: Callable[[dict[str, Any]], bool] | None = field(default=None, compare=False, repr=False)
    """Whether the paths that must exist in the arguments of a built-in tool exist. May block."""
    path_certainty: Callable[[str, str], float] | None = field(default=None, compare=False, repr=False)
    """How certainly, from -1 to 1, a word names an existing path for a parameter of a built-in tool. May block."""

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def listed_name(self) -> str:
        """The tool's name for other programs, such as proxy clients."""
        return listed_name(self.server, self.upstream_name)

    @cached_property
    def category(self) -> str:
        """The tool's category, such as `images`; empty if unknown."""
        return self.assigned_category or self.category_with({})

    def category_with(self, own: CategoryWords) -> str:
        """Return the category of the tool's words, including the user's `own` categories of words."""
        texts = {"name": self.upstream_name, "tags": " ".join(self.tags), "server": self.server, "brief": self.brief}
        return category_of({field: words_in(text) for field, text in texts.items()}, own)

    @cached_property
    def schema_json(self) -> str:
        """The canonical JSON of the tool's schema."""
        return canonical_json(self.input_schema)

    @cached_property
    def schema_text(self) -> str:
        """The short form of the tool's schema."""
        return short_schema(self.input_schema)

    def resolved(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as the tool resolves them, such as a file's name to its path. May block."""
        return self.resolve_arguments({**params}) if self.resolve_arguments else {**params}

    @property
    def apparent_risk(self) -> Risk:
        """The risk, with an unconfirmed read taken as a read; for ranking and display, never for permission."""
        return Risk.READ if self.is_unconfirmed_read and self.risk is Risk.WRITE else self.risk

    @property
    def _heading(self) -> str:
        return self.name if self.apparent_risk is Risk.READ else f"{self.name} ({self.apparent_risk})"

    @cached_property
    def brief_line(self) -> str:
        """The tool's line in a prompt, without arguments."""
        return f"- {self._heading}: {brief_of(self.brief, LINE_WORDS)}"

    @cached_property
    def full_text(self) -> str:
        """The tool's text in a prompt, with arguments."""
        return f"- {self._heading}: {dedent_description(self.full)}\n{ARGUMENTS_PREFIX}{self.schema_text}"

    @cached_property
    def digest(self) -> str:
        """Digest of the server, the server's definition, and all other data by which the gate judges a call.

        An approval, and the result of checks of a call, is valid only for this digest.
        """
        full, input_schema = self.server_texts or (self.full, self.input_schema)
        judged = {one.name: getattr(self, one.name) for one in fields(self) if one.compare}
        judged |= {"full": full, "input_schema": input_schema, "server_texts": None}
        return digest_of({name: value for name, value in judged.items() if name not in _NOT_JUDGED})

    @property
    def result_labels(self) -> tuple[FlowLabel, ...]:
        """Labels that the tool's results may set; both, if nothing is known."""
        returns = {FlowLabel.UNTRUSTED: self.returns_untrusted, FlowLabel.PRIVATE: self.returns_private}
        return tuple(label for label, holds in returns.items() if holds is not False)

    @property
    def is_external(self) -> bool:
        """Whether the tool is stated to reach outside or, without a statement, has a category such as web."""
        return self.category in EXTERNAL if self.open_world is None else self.open_world

    @cached_property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Schemas by parameter name; a required parameter without a schema has an empty one."""
        properties = self.input_schema.get("properties", {})
        described = properties if isinstance(properties, dict) else {}
        named = {**described, **{name: {} for name in self.required if name not in described}}
        return {name: schema if isinstance(schema, dict) else {} for name, schema in named.items()}

    @cached_property
    def takes_path(self) -> bool:
        """Whether a parameter is named like a file or folder."""
        return any(not _PATHS.isdisjoint(words_of(name)) for name in self.parameters)

    @cached_property
    def key_parameter(self) -> str | None:
        """The text parameter that takes an idempotency key; None if there is none."""
        return key_parameter(self.parameters)

    @property
    def is_open(self) -> bool:
        """Whether the tool may take parameters that are not listed in `properties`."""
        extra = self.input_schema.get("additionalProperties")
        return extra is True or isinstance(extra, dict) or bool(self.input_schema.keys() & _OTHER_PROPERTIES)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Names of the required parameters."""
        required = self.input_schema.get("required", ())
        return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list | tuple) else ()

    def signature(self) -> str:
        """Return the parameters in one line: `path (string, required), mode (string)`."""
        parts = [
            f"{name} ({type_name(schema)}{', required' if name in self.required else ''})"
            for name, schema in self.parameters.items()
        ]
        return ", ".join(parts) or "no parameters"


def canonical_json(value: Mapping[str, Any]) -> str:
    """Return the canonical JSON of an object: equal if and only if the objects are equal."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest_of(value: Any) -> str:
    """Return the SHA-256 digest of a JSON value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def type_name(schema: dict[str, Any]) -> str:
    """Return a schema's type, such as `string`, `integer or null`, `any`."""
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


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the JSON types that a schema names; none if it names none."""
    kinds = schema.get("type")
    return [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]


def subschemas(schema: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a schema and the schemas inside, each with the name of its parameter or definition."""
    if depth > MAX_SCHEMA_DEPTH or not isinstance(schema, dict):
        return
    yield name, schema
    for kind in ("properties", "$defs"):
        named = schema.get(kind)
        for inner, part in named.items() if isinstance(named, dict) else ():
            yield from subschemas(part if isinstance(part, dict) else {}, inner, depth + 1)
    for kind in ("items", "anyOf", "oneOf", "allOf"):
        parts = schema.get(kind)
        for part in parts if isinstance(parts, list) else [parts]:
            yield from subschemas(part, name, depth + 1)


def _word(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() else json.dumps(text)
