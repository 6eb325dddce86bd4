"""The `[discord]` table: the permissions that it grants or denies, and its errors."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from packetgate.connectors.discord.config import DiscordConfig, Person, load_discord_config
from packetgate.state.context import NO_TOOLS, RoutingContext
from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.preferences import Preferences, load_preferences

WHOLE = """
permanent = ["ai.read"]

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

[discord.blocked]
users = [6]
roles = [7]
channels = [8]

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


def test_a_complete_table_is_read(tmp_path: Path):
    config = table(tmp_path, WHOLE)
    assert (config.rate.turns, config.rate.seconds) == (3, 60.0)
    assert config.tools == {3: ["ai.read", "notes.*"], 5: []}
    assert load_preferences(tmp_path / "packetgate.toml") == Preferences(permanent=["ai.read"])


@dataclass(frozen=True)
class Rights:
    id: str
    person: Person
    given: dict[str, Any] | None
    """The settings in effect; None if the person may not send requests."""


OFF = {"allow_write_tools": False, "allow_execute_tools": False}
RIGHTS = [
    Rights("a stranger", Person(9, frozenset({9}), (9,)), None),
    Rights("by user, who may write", Person(1, channel_ids=(9,)), {**OFF, "allow_write_tools": True}),
    Rights("by role, which may run commands", Person(9, frozenset({2}), (9,)), {**OFF, "allow_execute_tools": True}),
    Rights("by channel", Person(9, channel_ids=(3,)), {**OFF, "allowed_tools": ("ai.read", "notes.*")}),
    Rights(
        "by the channel of a thread", Person(9, channel_ids=(10, 3)), {**OFF, "allowed_tools": ("ai.read", "notes.*")}
    ),
    Rights(
        "where there are no tools", Person(1, channel_ids=(5,)), {**OFF, "allow_write_tools": True, "enabled": False}
    ),
    Rights("a blocked user in an allowed channel", Person(6, channel_ids=(3,)), None),
    Rights("an allowed user with a blocked role", Person(1, frozenset({7}), (9,)), None),
    Rights("an allowed user in a blocked channel's thread", Person(1, channel_ids=(3, 8)), None),
    Rights("a role's number as a user", Person(2, channel_ids=(9,)), None),
    Rights("a user's number as a channel", Person(9, channel_ids=(1,)), None),
]


@pytest.mark.parametrize("case", RIGHTS, ids=lambda case: case.id)
def test_rights_depend_on_user_role_and_channel(tmp_path: Path, case: Rights):
    rights = table(tmp_path, WHOLE).settings_for(case.person)
    assert rights == (None if case.given is None else RoutingContext.model_validate(case.given))
    assert case.given is None or (rights is not None and rights.model_fields_set == set(case.given))


HERE, ELSEWHERE = Person(1, channel_ids=(3,)), Person(1, channel_ids=(9,))


@pytest.mark.parametrize(
    ("base", "person", "changed"),
    [
        ({"allow_execute_tools": True}, ELSEWHERE, {}),
        ({"allow_write_tools": False}, ELSEWHERE, {"allow_write_tools": False}),
        ({"confidence_threshold": 0.9}, ELSEWHERE, {"confidence_threshold": 0.9}),
        ({"allowed_tools": ("ai.*",)}, ELSEWHERE, {"allowed_tools": ("ai.*",)}),
        ({"allowed_tools": ("ai.*",)}, HERE, {"allowed_tools": ("ai.read",)}),
        ({"allowed_tools": ("mail.*",)}, HERE, {"allowed_tools": NO_TOOLS}),
        ({"enabled": False}, HERE, {"enabled": False}),
        ({"enabled": True}, Person(1, channel_ids=(5,)), {"enabled": False}),
        ({"ask_timeout_s": 5.0}, HERE, {"ask_timeout_s": 5.0}),
    ],
)
def test_run_settings_can_only_restrict_rights(
    tmp_path: Path, base: dict[str, Any], person: Person, changed: dict[str, Any]
):
    config = table(tmp_path, WHOLE)
    before = config.settings_for(person)
    limited = config.limited_by(RoutingContext.model_validate(base))
    assert before is not None
    assert limited.settings_for(person) == before.model_copy(update=changed)
    assert config.settings_for(person) == before
    assert limited.settings_for(Person(9)) is None


@pytest.mark.parametrize(
    ("person", "asker", "may"),
    [
        (Person(1, channel_ids=(9,)), 1, True),
        (Person(1, channel_ids=(9,)), 7, False),
        (Person(9, frozenset({4}), (9,)), 7, True),
        (Person(9, channel_ids=(9,)), 9, False),
        (Person(1, frozenset({7}), (9,)), 1, False),
        (Person(6, frozenset({4}), (9,)), 7, False),
        (Person(9, frozenset({4}), (9, 8)), 7, False),
    ],
)
def test_only_the_asker_and_approvers_may_decide(tmp_path: Path, person: Person, asker: int, may: bool):
    assert table(tmp_path, WHOLE).may_decide(person, asker) is may


def test_without_a_table_nobody_is_allowed(tmp_path: Path):
    for config in (load_discord_config(None), table(tmp_path, ""), table(tmp_path, "[discord]")):
        assert config == DiscordConfig()
        assert not config.allowed
        assert config.settings_for(Person(1, frozenset({1}), (1,))) is None


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("discord = 1", "discord"),
        ("[discord]\ntoken = 'x'", "discord.token"),
        ("[discord.allowed]\nuser = [1]", "discord.allowed.user"),
        ("[discord.allowed]\nusers = ['ada']", "discord.allowed.users.0"),
        ("[discord.allowed]\nusers = ['123']", "discord.allowed.users.0"),
        ("[discord.allowed]\nroles = [0]", "discord.allowed.roles.0"),
        ("[discord.tools]\nlobby = []", "discord.tools.lobby"),
        ("[discord.tools]\n3 = ['']", "discord.tools.3.0"),
        ("[discord.rate]\nturns = 0", "discord.rate.turns"),
        ("[discord.models]\nsmall = 3", "discord.models.small"),
        (f"[discord]\nstatus = '{'x' * 129}'", "discord.status"),
        ("[discord.rate]\nseconds = inf", "discord.rate.seconds"),
    ],
)
def test_the_error_names_an_invalid_field(tmp_path: Path, text: str, field: str):
    with pytest.raises(ConfigError, match=re.escape(f"{tmp_path / 'packetgate.toml'}: {field}:")):
        table(tmp_path, text)
