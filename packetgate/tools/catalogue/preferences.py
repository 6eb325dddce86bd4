"""`packetgate.toml`: what the user says of the tools, over what their servers say."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from packetgate.state.errors import ConfigError
from packetgate.state.routing import Risk
from packetgate.tools.catalogue.chains import Chain, Named
from packetgate.tools.policy.rules import Rule
from packetgate.tools.spec.categories import CategoryWords
from packetgate.tools.spec.descriptions import BRIEF_WORDS
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.documents import DOCUMENT_READERS, DocumentFormat
from packetgate.tools.text.words import words_in

_WORDS, _PATTERN_WORDS = re.compile(r"[^\W_]+"), re.compile(r"(?:[^\W_]|\*)+")
MAX_FILE = 16_000_000
"""Largest file of settings, in bytes."""

NonEmpty = Annotated[str, Field(min_length=1)]
Pattern = NonEmpty
"""A canonical name, in which `*` stands for any part."""
RecentTools = Annotated[int, Field(ge=5, le=8)]
"""How many of the tools that a session used last stand on its palette."""

ELSEWHERE = frozenset({"discord", "models", "proxy", "serve", "settings"})
"""Tables of the file that say nothing of tools: who needs one reads it."""

SETTINGS = (
    "not known: the file may hold `permanent`, `recent_tools`, `[pools]`, `[contexts.NAME]` with permanent and "
    "recent_tools, `[users.NAME]` with permanent, `[categories]`, `[tasks.NAME]` with patterns and tools, "
    "`[chains.NAME]` with description, parameters and `[[chains.NAME.steps]]` with tool and params, `[policy]` with "
    "remember, remember_days, remember_uses and `[[policy.rules]]` with effect, tool, server, arguments, channels and, "
    'with the name in quotes, `[tools."server.tool"]` with brief, category, external, risk, examples; '
    "and `sandbox` (auto, require, off), `sandbox_network`, `sandbox_reads`, `sandbox_writes`; the "
    "settings of a run stand in `[settings]`, models and their options in `[models.lite]` and `[models.prime]`"
)


class Table(BaseModel):
    """A table of the file: nothing unknown stands in it, and every value is of its own type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, str_strip_whitespace=True)


class ToolPreference(Table):
    """What the user says of one tool; None where they leave it to its server."""

    brief: NonEmpty | None = None
    """On one line, at most 100 words."""
    category: NonEmpty | None = None
    risk: Annotated[Risk, Field(strict=False)] | None = None
    """What it may do, whatever else is thought of it; arguments may still raise a read."""
    external: bool | None = None
    """Whether it reaches out of the user's own servers, so that it is offered only when a request calls for it."""
    examples: list[NonEmpty] = []
    """Requests that it is for."""

    @field_validator("brief")
    @classmethod
    def _brief(cls, said: str | None) -> str | None:
        words = said.split() if said else []
        if len(words) > BRIEF_WORDS:
            raise ValueError(f"{len(words)} words, where {BRIEF_WORDS} are the most")
        return " ".join(words) or None


class Policy(Table):
    """What may run without a question, and what may not at all."""

    remember: Literal["never", "session", "always"] = "never"
    """How far a person's approval may be remembered, if they say so."""
    remember_days: int = Field(default=30, ge=1, le=365)
    """How long at most."""
    remember_uses: int = Field(default=100, ge=1, le=10_000)
    """For how many calls at most."""
    rules: list[Rule] = []


class ContextPreference(Table):
    """What holds in one kind of conversation."""

    permanent: list[Pattern] = []
    recent_tools: RecentTools | None = None


class UserPreference(Table):
    """What holds for one user, as the connector names them."""

    permanent: list[Pattern] = []


class Task(Table):
    """Tools that are put on the palette of requests that match a pattern."""

    patterns: Annotated[list[NonEmpty], Field(min_length=1)]
    """Words of a request; `*` matches any words, or any part of one."""
    tools: Annotated[list[Pattern], Field(min_length=1)]

    def is_of(self, request: str) -> bool:
        """Whether a request matches one of the patterns. Case and punctuation are ignored."""
        return any(_reads_like(one, request) for one in self.patterns)


class Preferences(Table):
    """The whole file."""

    permanent: list[Pattern] = []
    """Tools that stand on every palette, in full."""
    recent_tools: RecentTools = 6
    contexts: dict[NonEmpty, ContextPreference] = {}
    """By `context_type`."""
    users: dict[NonEmpty, UserPreference] = {}
    categories: dict[NonEmpty, list[NonEmpty]] = {}
    """Words that speak of a category, beside those that are shipped; of a new one, all of them."""
    tasks: dict[NonEmpty, Task] = {}
    chains: dict[Named, Chain] = {}
    """Tools that are called one after the other, each a tool of its own."""
    pools: dict[NonEmpty, list[Pattern]] = {}
    """By `context_type`: tools to begin with."""
    tools: dict[Pattern, ToolPreference] = {}
    sandbox: Literal["auto", "require", "off"] = "auto"
    """Whether programs of `ai.execute` run confined: where that is possible, only then, or never."""
    sandbox_network: bool = False
    sandbox_reads: list[NonEmpty] = []
    """Folders and files outside the working folder that they may read, and the same to change."""
    sandbox_writes: list[NonEmpty] = []
    policy: Policy = Policy()

    @field_validator("categories")
    @classmethod
    def _single_words(cls, said: dict[str, list[str]]) -> dict[str, list[str]]:
        for name, words in said.items():
            if several := [word for word in words if not word.isalnum()]:
                raise ValueError(f"of {name!r}, {several[0]!r} is not one word: give each word by itself")
        return said

    @cached_property
    def category_words(self) -> CategoryWords:
        """The categories of each of the user's own words."""
        named: dict[str, set[str]] = {}
        for name, said in self.categories.items():
            for word in said:
                named.setdefault(words_in(word)[0], set()).add(name.casefold())
        return {word: frozenset(names) for word, names in named.items()}

    def permanent_for(self, context_type: str, person: str) -> tuple[Pattern, ...]:
        """Return the permanent tools of all conversations, of one kind of conversation, and of one user."""
        kinds = [said.permanent for said in self._of_kind(context_type)]
        own = [self.users[person].permanent] if person in self.users else []
        return tuple(pattern for patterns in (self.permanent, *kinds, *own) for pattern in patterns)

    def recent_for(self, context_type: str) -> int:
        """Return how many recent tools a palette has in this kind of conversation."""
        said = [one.recent_tools for one in self._of_kind(context_type) if one.recent_tools]
        return said[0] if said else self.recent_tools

    def _of_kind(self, context_type: str) -> list[ContextPreference]:
        return [said for name, said in self.contexts.items() if singular(name) == singular(context_type)]

    def tools_for(self, request: str) -> tuple[Pattern, ...]:
        """Return the tools of all tasks that a request matches."""
        return tuple(pattern for task in self.tasks.values() if task.is_of(request) for pattern in task.tools)

    def applied(self, spec: ToolSpec) -> ToolSpec:
        """Return a tool as the user wants it seen; of several patterns that fit, a later one adds to an earlier."""
        for pattern, said in self.tools.items():
            if fnmatchcase(spec.name, pattern):
                spec = replace(
                    spec,
                    brief=said.brief or spec.brief,
                    given_category=said.category or spec.given_category,
                    open_world=spec.open_world if said.external is None else said.external,
                    reaches_outside=spec.reaches_outside if said.external is None else said.external,
                    examples=(*spec.examples, *said.examples),
                )
                spec = spec if said.risk is None else _with_risk(spec, said.risk)
        if self.categories and not spec.given_category:
            spec = replace(spec, given_category=spec.category_by(self.category_words))
        about = tuple(rule for rule in self.policy.rules if rule.is_about(spec.name, spec.server))
        return replace(spec, rules=about) if about else spec

    def without_a_tool(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the patterns that fit none of these names: each as (where it stands, pattern)."""
        known, rules = list(names), self.policy.rules
        written = [
            *(("permanent", pattern) for pattern in self.permanent),
            *((f"contexts.{name}", pattern) for name, said in self.contexts.items() for pattern in said.permanent),
            *((f"users.{name}", pattern) for name, said in self.users.items() for pattern in said.permanent),
            *((f"tasks.{name}", pattern) for name, task in self.tasks.items() for pattern in task.tools),
            *((f"pools.{context}", pattern) for context, patterns in self.pools.items() for pattern in patterns),
            *((f"chains.{name}", step.tool) for name, chain in self.chains.items() for step in chain.steps),
            *(("tools", pattern) for pattern in self.tools),
            *((f"policy.rules.{number}", pattern) for number, rule in enumerate(rules) for pattern in rule.patterns),
        ]
        return tuple((where, pattern) for where, pattern in written if not matching([pattern], known))


def _with_risk(spec: ToolSpec, risk: Risk) -> ToolSpec:
    holds, why = spec.risk_holds or risk is not Risk.READ, ("packetgate.toml says so",)
    return replace(spec, risk=risk, least_risk=risk, risk_holds=holds, risk_why=why, unvouched=False)


def matching(patterns: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that the patterns stand for, in the patterns' order, each once."""
    known = list(names)
    return tuple(dict.fromkeys(name for pattern in patterns for name in known if fnmatchcase(name, pattern)))


def _reads_like(pattern: str, request: str) -> bool:
    """Whether the words of a pattern occur in a request; `*` matches any words, or any part of one."""
    wanted = "  ".join(_PATTERN_WORDS.findall(pattern.casefold())).replace("  *", " *").replace("*  ", "* ")
    return fnmatchcase(f"  {'  '.join(_WORDS.findall(request.casefold()))}  ", f"* {wanted} *")


def singular(kind: str) -> str:
    """Return the name of a kind as it is compared: `Tasks` is `task`."""
    return kind.strip().casefold().removesuffix("s")


def load_preferences(path: Path | None) -> Preferences:
    """Read `packetgate.toml`; without a path, nothing is preferred.

    Raises:
        ConfigError: the file is missing, is not TOML, or says what is not understood.
    """
    if path is None:
        return Preferences()
    said = {name: value for name, value in read_file(path).items() if name not in ELSEWHERE}
    try:
        return Preferences.model_validate(said)
    except ValidationError as error:
        raise misunderstood(path, error, SETTINGS) from error


def misunderstood(path: Path, error: ValidationError, settings: str, table: str = "") -> ConfigError:
    """Return the error that names the first place that is not understood; `settings` is said of one that is unknown."""
    first = error.errors(include_url=False)[0]
    parts = [table] * bool(table) + [str(part) for part in first["loc"] if part != "[key]"]
    where = ".".join(part if part.isidentifier() or part.isdigit() else f'"{part}"' for part in parts)
    what = settings if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
    return ConfigError(f"{path}: {where}: {what}")


def read_file(path: Path, form: DocumentFormat = "TOML", check: str = "PACKETGATE_CONFIG, or leave it out") -> Any:
    """Read the whole of a file of settings, whatever stands in it; `check` is said where it cannot be opened.

    Raises:
        ConfigError: the file is missing, or is not of that form.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise ConfigError(f"{path}: larger than {MAX_FILE // 10**6} MB: check {check}")
        data = path.read_bytes()
        text = data.decode(json.detect_encoding(data) if form == "JSON" else "utf-8-sig")
        return DOCUMENT_READERS[form](text)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file: check {check}") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}: check {check}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}: save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, thousands of brackets
        raise ConfigError(f"{path}: not {form} that can be read: {str(error).splitlines()[0]}") from error
