"""`packetgate.toml`: the user's preferences about tools, which override the servers' statements."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, ValidationError, field_validator

from packetgate.state.errors import ConfigError, first_problem
from packetgate.state.routing import Risk
from packetgate.tools.catalogue.config_file import ConfigTable, NonEmpty, Pattern, config_error, read_config_file
from packetgate.tools.policy.rules import Rule
from packetgate.tools.spec.categories import CategoryWords
from packetgate.tools.spec.descriptions import BRIEF_WORDS, brief_of
from packetgate.tools.spec.tool_spec import ToolSpec

OTHER_TABLES = frozenset({"discord", "models", "proxy", "serve", "settings"})
"""Tables of the file that other modules read."""

SETTINGS = (
    "unknown setting: the file may contain `permanent`, `recent_tools`, `[pools]`, `[contexts.NAME]` (permanent, "
    "recent_tools), "
    "`[users.NAME]` (permanent), `[categories]`, `[tasks.NAME]` (patterns, tools), `[policy]`, "
    '`[[policy.rules]]`, `[tools."server.tool"]` (with the name in quotes: brief, category, defaults, description, '
    "external, risk, title, examples), "
    "`sandbox`, `sandbox_network`, `sandbox_memory_gb`, `sandbox_reads`, `sandbox_writes`, `[settings]`, `[models]`"
)


class ToolPreference(ConfigTable):
    """Preferences about a tool; None keeps the server's value."""

    brief: NonEmpty | None = None
    """One line, at most 100 words."""
    description: NonEmpty | None = None
    title: NonEmpty | None = None
    defaults: dict[NonEmpty, JsonValue] = {}
    """Values of arguments that a call omits."""
    category: NonEmpty | None = None
    risk: Annotated[Risk, Field(strict=False)] | None = None
    """Overrides the rated risk; arguments may still raise a read."""
    external: bool | None = None
    """Whether the tool reaches outside: the gate then limits the data in its reads; palettes prefer other tools."""
    examples: list[NonEmpty] = []
    """Example requests that the tool serves."""

    @field_validator("brief")
    @classmethod
    def _check_brief(cls, brief: str | None) -> str | None:
        words = brief.split() if brief else []
        if len(words) > BRIEF_WORDS:
            raise ValueError(f"{len(words)} words: the limit is {BRIEF_WORDS}")
        return " ".join(words) or None


RecentTools = Annotated[int, Field(ge=5, le=8)]


class Policy(ConfigTable):
    """Rules for calls that run without approval or are denied, and for remembered approvals."""

    remember: Literal["never", "session", "always"] = "never"
    """The longest time for which an approval may be remembered."""
    remember_days: int = Field(default=30, ge=1, le=365)
    remember_uses: int = Field(default=100, ge=1, le=10_000)
    rules: list[Rule] = []

    @property
    def remembers_trust(self) -> bool:
        """Whether trust in a tool as a read may be remembered: unless the file sets `remember = "never"`."""
        return self.remember != "never" or "remember" not in self.model_fields_set


class UserPreference(ConfigTable):
    """`[users.NAME]`: preferences for one user."""

    permanent: list[Pattern] = []


class ContextPreference(UserPreference):
    """`[contexts.NAME]`: preferences for one kind of conversation."""

    recent_tools: RecentTools | None = None


class Task(ConfigTable):
    """`[tasks.NAME]`: tools for the requests that match a pattern."""

    patterns: Annotated[list[NonEmpty], Field(min_length=1)]
    """Whole words of a request; `*` matches any words, or any part of a word."""
    tools: Annotated[list[Pattern], Field(min_length=1)]

    def matches(self, request: str) -> bool:
        """Return whether a request contains one of the patterns, ignoring case and punctuation."""
        words = "  ".join(re.findall(r"[^\W_]+", request.casefold()))
        for pattern in self.patterns:
            parts = "  ".join(re.findall(r"(?:[^\W_]|\*)+", pattern.casefold()))
            if fnmatchcase(f"  {words}  ", f"* {parts.replace('  *', ' *').replace('*  ', '* ')} *"):
                return True
        return False


class Preferences(ConfigTable):
    """The content of `packetgate.toml`, without `OTHER_TABLES`."""

    permanent: list[Pattern] = []
    """Tools on every palette."""
    recent_tools: RecentTools = 6
    """Maximum number of a session's last used tools on its palette."""
    contexts: dict[NonEmpty, ContextPreference] = {}
    """Preferences by `context_type`."""
    users: dict[NonEmpty, UserPreference] = {}
    """Preferences by user name, as the connector provides it."""
    categories: dict[NonEmpty, list[Annotated[str, Field(pattern=r"^[^\W_]+$")]]] = {}
    """Words of each category, in addition to the shipped words."""
    tasks: dict[NonEmpty, Task] = {}
    pools: dict[NonEmpty, list[Pattern]] = {}
    """The initial tools of a conversation, by `context_type`."""
    tools: dict[Pattern, ToolPreference] = {}
    sandbox: Literal["auto", "require", "off"] = "auto"
    """Whether programs of `ai.execute` are confined. `auto`: if possible. `require`: or they do not run. `off`: no."""
    sandbox_network: bool = False
    sandbox_memory_gb: float = Field(default=4.0, gt=0)
    """Memory that such a program may use; never more than half of the machine's memory."""
    sandbox_reads: list[NonEmpty] = []
    """Files and folders outside the working folder that these programs may read."""
    sandbox_writes: list[NonEmpty] = []
    """Files and folders outside the working folder that these programs may change."""
    policy: Policy = Policy()

    def with_rules(self, rules: Iterable[Mapping[str, Any]]) -> "Preferences":
        """Return the preferences with more policy rules. Raise `ConfigError` if a rule is not valid."""
        try:
            added = Policy.model_validate({"rules": [*rules]}).rules
        except ValidationError as error:
            raise ConfigError(first_problem(error)) from error
        policy = self.policy.model_copy(update={"rules": [*self.policy.rules, *added]})
        return self.model_copy(update={"policy": policy})

    @cached_property
    def category_words(self) -> CategoryWords:
        """The user's categories of each word, in lower case."""
        categories: dict[str, frozenset[str]] = {}
        for name, words in self.categories.items():
            for word in words:
                categories[word.casefold()] = categories.get(word.casefold(), frozenset()) | {name.casefold()}
        return categories

    def permanent_patterns(self, context_type: str, person: str) -> tuple[Pattern, ...]:
        """Return the patterns of permanent tools for all conversations, a kind of conversation, and a user."""
        users_patterns = self.users[person].permanent if person in self.users else []
        return (*self.permanent, *self._context(context_type).permanent, *users_patterns)

    def recent_limit(self, context_type: str) -> int:
        """Return the largest number of recent tools on a palette, for a kind of conversation."""
        return self._context(context_type).recent_tools or self.recent_tools

    def _context(self, context_type: str) -> ContextPreference:
        kind = normalized_kind(context_type)
        return next((own for name, own in self.contexts.items() if normalized_kind(name) == kind), ContextPreference())

    def task_patterns(self, request: str) -> tuple[Pattern, ...]:
        """Return the tool patterns of the tasks that a request matches."""
        return tuple(pattern for task in self.tasks.values() if task.matches(request) for pattern in task.tools)

    def apply(self, spec: ToolSpec) -> ToolSpec:
        """Return a tool with the preferences of all patterns that match its name; later patterns override earlier."""
        for pattern, preference in self.tools.items():
            if fnmatchcase(spec.name, pattern):
                spec = replace(
                    spec,
                    brief=preference.brief or brief_of(preference.description or "") or spec.brief,
                    assigned_category=preference.category or spec.assigned_category,
                    open_world=spec.open_world if preference.external is None else preference.external,
                    reaches_outside=spec.reaches_outside if preference.external is None else preference.external,
                    outward=preference.external or spec.outward,
                    examples=(*spec.examples, *preference.examples),
                )
                spec = _with_definition(spec, preference)
                if preference.risk is not None:
                    spec = replace(
                        spec,
                        risk=preference.risk,
                        least_risk=preference.risk,
                        has_fixed_risk=spec.has_fixed_risk or preference.risk is not Risk.READ,
                        risk_reasons=("packetgate.toml sets this risk",),
                        risk_source="packetgate.toml",
                        is_unconfirmed_read=False,
                    )
        if self.categories and not spec.assigned_category:
            spec = replace(spec, assigned_category=spec.category_with(self.category_words))
        rules = tuple(rule for rule in self.policy.rules if rule.names_tool(spec.name, spec.server))
        return replace(spec, rules=rules) if rules else spec

    def unmatched_patterns(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the patterns that match none of these tool names, each as (setting, pattern)."""
        known = list(names)
        patterns: dict[str, Iterable[str]] = {
            "permanent": self.permanent,
            **{f"contexts.{name}": own.permanent for name, own in self.contexts.items()},
            **{f"users.{name}": own.permanent for name, own in self.users.items()},
            **{f"tasks.{name}": task.tools for name, task in self.tasks.items()},
            **{f"pools.{context}": tools for context, tools in self.pools.items()},
            "tools": self.tools,
            **{f"policy.rules.{number}": rule.patterns for number, rule in enumerate(self.policy.rules)},
        }
        every = ((setting, pattern) for setting, own in patterns.items() for pattern in own)
        return tuple((setting, pattern) for setting, pattern in every if not matching_names([pattern], known))


def _with_definition(spec: ToolSpec, preference: ToolPreference) -> ToolSpec:
    """Return a tool with the configured description, title and defaults. The digest stays the server's."""
    defaults = {name: value for name, value in preference.defaults.items() if name in spec.parameters}
    description, title = preference.description or spec.full, preference.title or spec.title
    if (description, title) == (spec.full, spec.title) and not defaults:
        return spec
    schema = spec.input_schema
    if defaults:
        values = {name: {**spec.parameters[name], "default": value} for name, value in defaults.items()}
        required = [name for name in spec.required if name not in defaults]
        schema = {**schema, "properties": {**schema.get("properties", {}), **values}, "required": required}
    shown = {"description": description, "inputSchema": schema} | ({"title": title} if title else {})
    return replace(
        spec,
        full=description,
        title=title,
        input_schema=schema,
        server_texts=spec.server_texts or (spec.full, spec.input_schema),
        configured_defaults={**spec.configured_defaults, **defaults},
        definition=spec.definition and {**spec.definition, **shown},
    )


def matching_names(patterns: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the matching names without duplicates, in the order of the patterns."""
    known = list(names)
    return tuple(dict.fromkeys(name for pattern in patterns for name in known if fnmatchcase(name, pattern)))


def normalized_kind(kind: str) -> str:
    """Return a kind of conversation in lower case and singular: `task` for `Tasks`."""
    return kind.strip().casefold().removesuffix("s")


def load_preferences(path: Path | None) -> Preferences:
    """Read `packetgate.toml`; without a path, return the defaults.

    Raise `ConfigError` if the file is missing, is not TOML, or has an invalid setting.
    """
    if path is None:
        return Preferences()
    settings = {name: value for name, value in read_config_file(path).items() if name not in OTHER_TABLES}
    try:
        return Preferences.model_validate(settings)
    except ValidationError as error:
        raise config_error(path, error, SETTINGS) from error
