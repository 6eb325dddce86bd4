"""The `[discord]` table of `packetgate.toml`: who may ask for what, and where. Everything else is denied."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr

from packetgate.connectors.clients import load_table
from packetgate.state.context import RoutingContext, intersect_patterns
from packetgate.tools.catalogue.config_file import ConfigTable, Pattern

Id = Annotated[int, Field(gt=0, lt=2**63)]
"""A Discord id, in the form that Discord's developer mode copies."""

KNOWN_SETTINGS = (
    "the tables `allowed`, `writes`, `commands`, `approvers` "
    "(each with users, roles, channels), `tools` (patterns by channel) and `rate` (turns, seconds)"
)


@dataclass(frozen=True)
class Person:
    """A user, and the channel where the user wrote a message or pressed a button."""

    user: int
    roles: frozenset[int] = frozenset()
    """The user's roles in the server; empty in direct messages."""
    channel_ids: tuple[int, ...] = ()
    """The channel; for a thread, the thread and then its channel."""


def person_of(user: Any, channel: Any) -> Person:
    """Return the user and the channel of a message or button press."""
    channel_ids = (channel.id, getattr(channel, "parent_id", None))
    return Person(
        user=user.id,
        roles=frozenset(role.id for role in getattr(user, "roles", ())),
        channel_ids=tuple(channel_id for channel_id in channel_ids if channel_id is not None),
    )


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
    """How many turns a user may start in a period."""

    turns: Annotated[int, Field(ge=1)] = 10
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0


class DiscordConfig(ConfigTable):
    """The table `[discord]`."""

    allowed: Group = Group()
    """Users whom the bot answers; empty means nobody."""
    writes: Group = Group()
    """Users who may use write tools; each call still needs approval."""
    commands: Group = Group()
    """Users who may use tools that execute commands; each call still needs approval."""
    approvers: Group = Group()
    """Users who may approve other users' calls."""
    tools: dict[Annotated[Id, Field(strict=False)], list[Pattern]] = {}
    """Allowed tools for each channel or thread. An empty list allows none; a channel without an entry has all tools."""
    rate: Rate = Rate()
    _base: RoutingContext = PrivateAttr(default=RoutingContext())

    def limited_by(self, base: RoutingContext) -> Self:
        """Return a copy that also applies the settings of every run. They can only forbid more."""
        limited = self.model_copy()
        limited._base = base
        return limited

    def settings_for(self, person: Person) -> RoutingContext | None:
        """Return the settings for a user's turns in a channel, or None if the user may not ask."""
        if not self.allowed.includes(person):
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
        return self.approvers.includes(person) or (person.user == asker and self.allowed.includes(person))


def load_discord_config(path: Path | None) -> DiscordConfig:
    """Return the `[discord]` table; without a table, every user is denied. Raise ConfigError if it is invalid."""
    return load_table(DiscordConfig, path, "discord", KNOWN_SETTINGS)
