"""The `[discord]` table of `packetgate.toml`: the users' rights, by channel. Everything else is denied."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr

from packetgate.connectors.clients import load_table
from packetgate.graph.settings import DEFAULT_PREFERENCES, Settings
from packetgate.state.base import now
from packetgate.state.context import RoutingContext, intersect_patterns
from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.config_file import ConfigTable, NonEmpty, Pattern
from packetgate.toolsets.builtin.undo_store import UndoStore

log = logging.getLogger(__name__)

Id = Annotated[int, Field(gt=0, lt=2**63)]
"""A Discord id, in the form that Discord's developer mode copies."""

MAX_LABEL_CHARS = 100
"""Longest choice that Discord accepts."""
KEPT = "the previous settings stay in use"
KNOWN_SETTINGS = (
    "`status`, and the tables `allowed`, `blocked`, `owners`, `writes`, `commands`, `approvers` "
    "(each with users, roles, channels), `models` (names of models by label), `tools` (patterns by channel) "
    "and `rate` (turns, seconds)"
)


@dataclass(frozen=True)
class Person:
    """A user, and the channel where the user wrote a message or pressed a button."""

    user: int
    roles: frozenset[int] = frozenset()
    """The user's roles in the server; empty in direct messages."""
    channel_ids: tuple[int, ...] = ()
    """The channel and its category; for a thread, the thread and then its channel."""


def person_of(user: Any, channel: Any) -> Person:
    """Return the user and the channel of a message or button press."""
    roles = frozenset(role.id for role in getattr(user, "roles", ()))
    return Person(user=user.id, roles=roles, channel_ids=channel_ids_of(channel))


def channel_ids_of(channel: Any) -> tuple[int, ...]:
    """Return the ids of a channel, of a thread's channel, and of the category, the narrowest first."""
    outer = getattr(channel, "parent", None) or channel
    ids = (channel.id, getattr(channel, "parent_id", None), getattr(outer, "category_id", None))
    return tuple(dict.fromkeys(one for one in ids if one is not None))


class Group(ConfigTable):
    """Users by user id, role or channel. A user who matches one of these belongs to the group."""

    users: list[Id] = []
    roles: list[Id] = []
    channels: list[Id] = []
    """Everyone who can write in the channel and its threads."""

    def includes(self, person: Person) -> bool:
        """Whether the user belongs to the group in that channel."""
        return person.user in self.users or bool(
            person.roles & {*self.roles} or {*person.channel_ids} & {*self.channels}
        )

    def __bool__(self) -> bool:
        return bool(self.users or self.roles or self.channels)


class Rate(ConfigTable):
    """Maximum number of turns that a user may start in a period."""

    turns: Annotated[int, Field(ge=1)] = 10
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0


class DiscordConfig(ConfigTable):
    """The table `[discord]`."""

    allowed: Group = Group()
    """Users whom the bot answers; empty means nobody."""
    blocked: Group = Group()
    """Users without rights, and channels in which nobody has rights, whatever other tables allow."""
    owners: Group = Group()
    """Allowed users who may switch the model, and who are notified if the changed file cannot be read."""
    writes: Group = Group()
    """Users who may use write tools; each call still needs approval."""
    commands: Group = Group()
    """Users who may use tools that execute commands; each call still needs approval."""
    approvers: Group = Group()
    """Users who may approve other users' calls."""
    tools: dict[Annotated[Id, Field(strict=False)], list[Pattern]] = {}
    """Allowed tools for each channel or thread. An empty list allows none; a channel without an entry has all tools."""
    rate: Rate = Rate()
    models: dict[Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARS)], NonEmpty] = {}
    """Models that owners can switch to, by the label that Discord shows."""
    status: Annotated[str, Field(max_length=128)] = ""
    """The bot's status line."""
    _base: RoutingContext = PrivateAttr(default=RoutingContext())

    def limited_by(self, base: RoutingContext) -> Self:
        """Return a copy that also applies the settings of every run. They can only forbid more."""
        limited = self.model_copy()
        limited._base = base
        return limited

    def settings_for(self, person: Person) -> RoutingContext | None:
        """Return the settings for a user's turns in a channel, or None if the user may not ask."""
        if self.blocked.includes(person) or not self.allowed.includes(person):
            return None
        settings: dict[str, Any] = {name: getattr(self._base, name) for name in self._base.model_fields_set}
        for name, group in (("allow_write_tools", self.writes), ("allow_execute_tools", self.commands)):
            settings[name] = settings.get(name, True) and group.includes(person)
        patterns = next((self.tools[channel_id] for channel_id in person.channel_ids if channel_id in self.tools), None)
        if patterns is not None:
            limited = intersect_patterns(patterns, self._base.allowed_tools)
            settings |= {"allowed_tools": limited} if patterns else {"enabled": False}
        return RoutingContext.model_validate(settings)

    def may_decide(self, person: Person, asker: int) -> bool:
        """Whether a user may approve the calls of `asker`'s turn."""
        may = self.approvers.includes(person) or (person.user == asker and self.allowed.includes(person))
        return may and not self.blocked.includes(person)

    def is_owner(self, person: Person) -> bool:
        """Whether a user may switch the model."""
        return self.settings_for(person) is not None and self.owners.includes(person)


def load_discord_config(path: Path | None) -> DiscordConfig:
    """Return the `[discord]` table; without a table, every user is denied. Raise ConfigError if it is invalid."""
    return load_table(DiscordConfig, path, "discord", KNOWN_SETTINGS)


class LiveConfig:
    """The current `[discord]` table of the file. An unusable file changes nothing."""

    def __init__(self, settings: Settings, config: DiscordConfig) -> None:
        self._settings, self.config, self._since = settings, config, now()
        self._is_changed_by_tool = False
        self.problem = ""
        """Why the file is not used; empty if it is."""

    def reload(self) -> bool:
        """Read the file; return whether the table changed. Blocking."""
        config, problem = self.config, ""
        try:
            config = load_discord_config(self._settings.preferences_path).limited_by(config._base)
        except ConfigError as error:
            problem = f"{KEPT}: {error}".replace(f"{(self._settings.config or Path()).parent}/", "")
        if config != self.config:
            self.note_tool_changes()
        if self._is_changed_by_tool:
            config, problem = self.config, f"{KEPT}: a tool changed the file: read it, and restart the bot to use it"
        if problem and problem != self.problem:
            log.warning(problem)
        changed, self.config, self.problem = config != self.config, config, problem
        return changed

    def note_tool_changes(self) -> None:
        """Note if a built-in tool changed the file: users who may write must not give themselves rights. Blocking."""
        file = (self._settings.config or DEFAULT_PREFERENCES).resolve()
        changes = [one for one in UndoStore(self._settings.undo_path).changes() if one.at >= self._since]
        paths = [Path(change.root, path).resolve() for change in changes for path in change.paths]
        self._is_changed_by_tool = self._is_changed_by_tool or any(file.is_relative_to(path) for path in paths)
