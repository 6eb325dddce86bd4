"""The `[discord]` table: what it allows, what it does not, and what is wrong with it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from packetgate.connectors.discord.config import DiscordConfig, Person, load_discord_config
from packetgate.state.context import NO_TOOLS, RoutingContext
from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.preferences import Preferences, load_preferences

WHOLE = """
permanent = ["ai.read"]

[discord]
question_timeout_s = 600

[discord.allowed]
users = [1]
roles = [2]
channels = [3]

[discord.writes]
users = [1]

[discord.commands]
roles = [2]

[discord.approvers]
roles = [4]

[discord.tools]
3 = ["ai.read", "notes.*"]
5 = []

[discord.rate]
turns = 3
seconds = 60
"""


def table(tmp_path: Path, text: str) -> DiscordConfig:
    file = tmp_path / "packetgate.toml"
    file.write_text(text)
    return load_discord_config(file)


def test_the_whole_table(tmp_path: Path):
    config = table(tmp_path, WHOLE)
    assert (config.rate.turns, config.rate.seconds, config.question_timeout_s) == (3, 60.0, 600.0)
    assert config.tools == {3: ["ai.read", "notes.*"], 5: []}
    assert load_preferences(tmp_path / "packetgate.toml") == Preferences(permanent=["ai.read"])


@dataclass(frozen=True)
class Rights:
    id: str
    person: Person
    given: dict[str, Any] | None
    """What is set of the routing's settings; None where the person may not ask."""


OFF = {"allow_write_tools": False, "allow_execute_tools": False, "ask_timeout_s": 600.0}
RIGHTS = [
    Rights("a stranger", Person(9, frozenset({9}), (9,)), None),
    Rights("by user, who may write", Person(1, places=(9,)), {**OFF, "allow_write_tools": True}),
    Rights("by role, which may run commands", Person(9, frozenset({2}), (9,)), {**OFF, "allow_execute_tools": True}),
    Rights("by channel", Person(9, places=(3,)), {**OFF, "allowed_tools": ("ai.read", "notes.*")}),
    Rights("by the channel of a thread", Person(9, places=(8, 3)), {**OFF, "allowed_tools": ("ai.read", "notes.*")}),
    Rights("where there are no tools", Person(1, places=(5,)), {**OFF, "allow_write_tools": True, "enabled": False}),
    Rights("a role's number as a user", Person(2, places=(9,)), None),
    Rights("a user's number as a channel", Person(9, places=(1,)), None),
]


@pytest.mark.parametrize("case", RIGHTS, ids=lambda case: case.id)
def test_rights(tmp_path: Path, case: Rights):
    rights = table(tmp_path, WHOLE).context_for(case.person)
    assert rights == (None if case.given is None else RoutingContext.model_validate(case.given))
    assert case.given is None or (rights is not None and rights.model_fields_set == set(case.given))


@dataclass(frozen=True)
class Laid:
    id: str
    base: dict[str, Any]
    person: Person
    given: dict[str, Any]
    """What is other than without the settings of every run."""


HERE = Person(1, places=(3,))
LAID = [
    Laid("switched on for the terminal", {"allow_execute_tools": True}, Person(1, places=(9,)), {}),
    Laid("switched off for all", {"allow_write_tools": False}, Person(1, places=(9,)), {"allow_write_tools": False}),
    Laid("a threshold", {"confidence_threshold": 0.9}, Person(1, places=(9,)), {"confidence_threshold": 0.9}),
    Laid("a limit", {"allowed_tools": ("ai.*",)}, Person(1, places=(9,)), {"allowed_tools": ("ai.*",)}),
    Laid("a limit beside the channel's", {"allowed_tools": ("ai.*",)}, HERE, {"allowed_tools": ("ai.read",)}),
    Laid("a limit that leaves nothing", {"allowed_tools": ("mail.*",)}, HERE, {"allowed_tools": NO_TOOLS}),
    Laid("no tools at all", {"enabled": False}, HERE, {"enabled": False}),
    Laid("on, where the channel has none", {"enabled": True}, Person(1, places=(5,)), {"enabled": False}),
    Laid("a time, though the table has one", {"ask_timeout_s": 5.0}, HERE, {}),
]


@pytest.mark.parametrize("case", LAID, ids=lambda case: case.id)
def test_rights_over_the_settings_of_every_run(tmp_path: Path, case: Laid):
    config = table(tmp_path, WHOLE)
    before = config.context_for(case.person)
    rights = config.over(RoutingContext.model_validate(case.base)).context_for(case.person)
    assert before is not None
    assert rights == before.model_copy(update=case.given)
    assert config.context_for(case.person) == before
    assert config.over(RoutingContext.model_validate(case.base)).context_for(Person(9)) is None


@pytest.mark.parametrize(
    ("person", "asker", "may"),
    [
        (Person(1, places=(9,)), 1, True),
        (Person(1, places=(9,)), 7, False),
        (Person(9, frozenset({4}), (9,)), 7, True),
        (Person(9, places=(9,)), 9, False),
    ],
)
def test_who_may_decide(tmp_path: Path, person: Person, asker: int, may: bool):
    assert table(tmp_path, WHOLE).may_decide(person, asker) is may


def test_without_a_table_nobody_is_allowed(tmp_path: Path):
    for config in (load_discord_config(None), table(tmp_path, ""), table(tmp_path, "[discord]")):
        assert config == DiscordConfig()
        assert not config.allowed
        assert config.context_for(Person(1, frozenset({1}), (1,))) is None


@dataclass(frozen=True)
class Bad:
    id: str
    text: str
    says: list[str] = field(default_factory=list)


BAD = [
    Bad("no table", "discord = 1", ["discord: it must be a table"]),
    Bad("unknown", "[discord]\ntoken = 'x'", ["discord.token: not known", "`allowed`"]),
    Bad("unknown in a group", "[discord.allowed]\nuser = [1]", ["discord.allowed.user: not known"]),
    Bad("a name for an id", "[discord.allowed]\nusers = ['ada']", ["discord.allowed.users.0:", "integer"]),
    Bad("an id as text", "[discord.allowed]\nusers = ['123']", ["discord.allowed.users.0:", "integer"]),
    Bad("no id", "[discord.allowed]\nroles = [0]", ["discord.allowed.roles.0:", "greater than 0"]),
    Bad("a channel's name", "[discord.tools]\nlobby = []", ["discord.tools.lobby", "integer"]),
    Bad("empty pattern", "[discord.tools]\n3 = ['']", ["discord.tools.3.0:", "at least 1 character"]),
    Bad("no turns", "[discord.rate]\nturns = 0", ["discord.rate.turns:", "greater than or equal to 1"]),
    Bad("no end", "[discord.rate]\nseconds = inf", ["discord.rate.seconds:", "finite"]),
    Bad("no time", "[discord]\nquestion_timeout_s = 0", ["discord.question_timeout_s:", "greater than 0"]),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_what_is_refused_by_its_name(tmp_path: Path, case: Bad):
    with pytest.raises(ConfigError) as caught:
        table(tmp_path, case.text)
    for words in (str(tmp_path / "packetgate.toml"), *case.says):
        assert words in str(caught.value)
