"""`packetgate.toml`: what the user says of the tools, over what their servers say."""

import json
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from packetgate.state.errors import ConfigError
from packetgate.state.routing import Risk
from packetgate.tools.policy.rules import Rule
from packetgate.tools.spec.descriptions import BRIEF_WORDS
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.documents import READERS, Form

MAX_FILE = 16_000_000
"""Largest file of settings, in bytes."""

NonEmpty = Annotated[str, Field(min_length=1)]
Pattern = NonEmpty
"""A canonical name, in which `*` stands for any part."""

ELSEWHERE = frozenset({"discord", "models", "proxy", "serve", "settings"})
"""Tables of the file that say nothing of tools: who needs one reads it."""

SETTINGS = (
    "not known: the file may hold `permanent`, `[pools]`, `[policy]` with remember, remember_days, remember_uses and "
    "`[[policy.rules]]` with effect, tool, server, arguments, channels and, with the name in quotes, "
    '`[tools."server.tool"]` with brief, category, external, risk, examples, preview, cache_seconds; and `sandbox` '
    "(auto, require, off), `sandbox_network`, `sandbox_reads`, `sandbox_writes`; the settings of a run stand in "
    "`[settings]`, models and their options in `[models.lite]` and `[models.prime]`"
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
    cache_seconds: int | None = Field(default=None, ge=0, le=86_400)
    """How long what a read returned may be used again in its session; 0: never, whatever its server says."""
    examples: list[NonEmpty] = []
    """Requests that it is for."""
    preview: NonEmpty | None = None
    """The canonical name of the server's tool that reads what this one would replace, to show the difference: it reads
    by the user's word then, if it looks like that."""

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


class Preferences(Table):
    """The whole file."""

    permanent: list[Pattern] = []
    """Tools that stand on every palette, in full."""
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
                    cache_s=spec.cache_s if said.cache_seconds is None else said.cache_seconds,
                    examples=(*spec.examples, *said.examples),
                    preview=said.preview or spec.preview,
                )
                spec = spec if said.risk is None else _with_risk(spec, said.risk)
        if (
            spec.unvouched
            and spec.looks is Risk.READ
            and any(said.preview == spec.name for said in self.tools.values())
        ):
            spec = _with_risk(spec, Risk.READ)
        about = tuple(rule for rule in self.policy.rules if rule.is_about(spec.name, spec.server))
        return replace(spec, rules=about) if about else spec

    def without_a_tool(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the patterns that fit none of these names: each as (where it stands, pattern)."""
        known, rules = list(names), self.policy.rules
        written = [
            *(("permanent", pattern) for pattern in self.permanent),
            *((f"pools.{context}", pattern) for context, patterns in self.pools.items() for pattern in patterns),
            *(("tools", pattern) for pattern in self.tools),
            *((f'tools."{name}".preview', said.preview) for name, said in self.tools.items() if said.preview),
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


def read_file(path: Path, form: Form = "TOML", check: str = "PACKETGATE_CONFIG, or leave it out") -> Any:
    """Read the whole of a file of settings, whatever stands in it; `check` is said where it cannot be opened.

    Raises:
        ConfigError: the file is missing, or is not of that form.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise ConfigError(f"{path}: larger than {MAX_FILE // 10**6} MB: check {check}")
        data = path.read_bytes()
        text = data.decode(json.detect_encoding(data) if form == "JSON" else "utf-8-sig")
        return READERS[form](text)
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
