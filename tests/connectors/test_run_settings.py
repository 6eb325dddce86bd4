"""Settings of a run from options, variables and `packetgate.toml`."""

import json
import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from support.command_line import CommandLine

from packetgate.connectors.run_settings import ENV_PREFIX, FLAGS, run_settings
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError

ROOT = Path(__file__).parents[2]
WRITE = 'Write "hello" to notes.txt'


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        monkeypatch.delenv(name)


def table(folder: Path, text: str) -> Path:
    file = folder / "packetgate.toml"
    file.write_text(text)
    return file


def explicit_settings(cli: CommandLine, *options: str, **variables: str) -> dict[str, tuple[Any, str]]:
    """Return the explicit settings that `packetgate settings` shows."""
    done = cli.run("settings", "--json", *options, **variables)
    assert done.status == 0, done.err
    shown = [one for one in json.loads(done.out) if not one["name"].startswith("models.")]
    assert [one["name"] for one in shown] == list(RoutingContext.model_fields)
    return {one["name"]: (one["value"], one["from"]) for one in shown if one["from"] != "default"}


def test_options_override_variables_and_the_file(cli: CommandLine):
    assert explicit_settings(cli) == {}
    table(cli.folder, "[settings]\npalette_size = 10\nmax_reinjections = 1\nallow_write_tools = true\n")
    assert explicit_settings(
        cli,
        "--set",
        "palette_size=30",
        "--no-writes",
        PACKETGATE_PALETTE_SIZE="20",
        PACKETGATE_MAX_REINJECTIONS="2",
        PACKETGATE_ALLOWED_TOOLS="ai.read, notes.*",
    ) == {
        "palette_size": (30, "--set palette_size"),
        "max_reinjections": (2, "PACKETGATE_MAX_REINJECTIONS"),
        "allow_write_tools": (False, "--no-writes"),
        "allowed_tools": (["ai.read", "notes.*"], "PACKETGATE_ALLOWED_TOOLS"),
    }
    assert explicit_settings(cli)["palette_size"] == (10, "packetgate.toml: settings.palette_size")
    shown = cli.run("settings", PACKETGATE_ALLOW_EXECUTE_TOOLS="true")
    assert re.search(r"^allow_execute_tools +true +PACKETGATE_ALLOW_EXECUTE_TOOLS", shown.out, re.MULTILINE)
    assert "PACKETGATE_ALLOW_EXECUTE_TOOLS: applies to other users only where it restricts" in shown.err


def test_limits_also_apply_to_chat_and_answer(cli: CommandLine):
    asked = cli.run("ask", "--session", "s", "--allow-writes", WRITE)
    assert asked.status == 3
    only_reads = {"PACKETGATE_ALLOWED_TOOLS": "ai.read"}
    cli.run("answer", "yes", "--session", "s", **only_reads)
    assert not (cli.folder / "notes.txt").exists()
    outcome = cli.run("chat", "--set", "enabled=false", given=b"Read plan.txt\n")
    assert "gate opens at seven" not in outcome.out


BAD: list[tuple[str, list[str], dict[str, str], str]] = [
    ("--set confidence:", ["confidence=0.8"], {}, ""),
    ("--set zzz:", ["zzz=1"], {}, ""),
    ("--set enabled:", ["enabled"], {}, ""),
    ("--set allow_write_tools:", ["allow_write_tools=yes"], {}, ""),
    ("--set palette_size:", ["palette_size=300"], {}, ""),
    ("--set palette_size:", ["palette_size=1.5"], {}, ""),
    ("--set confidence_threshold:", ["confidence_threshold=nan"], {}, ""),
    ("--set ask_timeout_s:", ["ask_timeout_s=0"], {}, ""),
    ("--set on_low_confidence:", ["on_low_confidence=run"], {}, ""),
    ("--set allowed_tools:", ["allowed_tools="], {}, ""),
    ("--set allowed_tools:", ['allowed_tools=["ai.read"'], {}, ""),
    ("--set palette_size=2", ["palette_size=1", "palette_size=2"], {}, ""),
    ("PACKETGATE_CONFIDENCE_THRESHOLD:", [], {"CONFIDENCE_THRESHOLD": "high"}, ""),
    ("PACKETGATE_ALLOWED_TOOLS:", [], {"ALLOWED_TOOLS": ""}, ""),
    ("PACKETGATE_ALLOW_EXECUTE_TOOLS:", [], {"ALLOW_EXECUTE_TOOLS": "on"}, ""),
    ("PACKETGATE_ALLOWED_TOOL:", [], {"ALLOWED_TOOL": "ai.read"}, ""),
    ("settings.alowed_tools:", [], {}, "[settings]\nalowed_tools = ['ai.read']"),
    ("settings.palette_size:", [], {}, "[settings]\npalette_size = '3'"),
    ("settings.allow_write_tools:", [], {}, "[settings]\nallow_write_tools = 1"),
    ("settings.ask_timeout_s:", [], {}, "[settings]\nask_timeout_s = 2026-01-01"),
    ("settings:", [], {}, "settings = 1"),
    ("ENABLED", [], {"enabled": "false"}, ""),
]


@pytest.mark.parametrize(("names", "chosen", "variables", "file"), BAD, ids=str)
def test_an_invalid_setting_names_its_place(
    names: str, chosen: list[str], variables: dict[str, str], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, text in variables.items():
        prefix = ENV_PREFIX if name.isupper() else ENV_PREFIX.lower()
        monkeypatch.setenv(f"{prefix}{name}", text)
    with pytest.raises(ConfigError, match=re.escape(names)):
        run_settings(table(tmp_path, file), chosen)


@pytest.mark.parametrize("switches", [{"allow_write_tools": True}, {"allow_execute_tools": False}])
def test_a_switch_must_not_contradict_an_option(switches: dict[str, bool]):
    for name, is_on in switches.items():
        with pytest.raises(ConfigError, match=name):
            run_settings(None, [f"{name}={json.dumps(not is_on)}"], **switches)
        assert run_settings(None, [f"{name}={json.dumps(is_on)}"], **switches).sources == {name: FLAGS[name][is_on]}


def test_other_variables_of_packetgate_are_no_misspelt_settings(monkeypatch: pytest.MonkeyPatch):
    folders = ("packetgate", "benchmarks", "tests/support")
    source = "".join(file.read_text() for folder in folders for file in (ROOT / folder).rglob("*.py"))
    ours = {*re.findall(r"\bPACKETGATE_[A-Z_]*[A-Z]\b", source)} - {
        f"{ENV_PREFIX}{one.upper()}" for one in RoutingContext.model_fields
    }
    roles = {
        f"{ENV_PREFIX}{role}_{what}" for role in ("LITE", "PRIME", "EMBEDDINGS") for what in ("BASE_URL", "API_KEY")
    }
    for name in ours | roles:
        monkeypatch.setenv(name, "1")
    assert run_settings(None).sources == {}


def test_no_variable_has_two_meanings():
    assert not RoutingContext.model_fields.keys() & Settings.model_fields.keys()


def other_than_default(name: str) -> Any:
    """Return a valid value that differs from the setting's default. A turn must run with all of these values."""
    default = RoutingContext.model_fields[name].default
    match default:
        case bool():
            return not default
        case int() | float():
            return default + (0.05 if default < 1 else 1)
        case tuple():
            return ["ai.*", "notes.*"]
        case "":
            return "You are a pirate."
    return next(one for one in get_args(RoutingContext.model_fields[name].annotation) if one != default)


WANTED = {name: other_than_default(name) for name in RoutingContext.model_fields}


def written(value: Any) -> str:
    """Return a value as text for options and variables."""
    return ",".join(value) if isinstance(value, list) else json.dumps(value).strip('"')


def test_every_setting_reaches_the_turn(cli: CommandLine):
    options = [word for name, value in WANTED.items() for word in ("--set", f"{name}={written(value)}")]
    done = cli.run("ask", "--json", *options, "Read plan.txt")
    assert done.err == ""
    explicit_settings = json.loads(done.out)["governance"]["settings"]
    assert explicit_settings == pytest.approx(explicit_settings | WANTED)


@pytest.mark.parametrize("name", RoutingContext.model_fields)
def test_every_setting_is_read_from_each_place(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text, variable = written(WANTED[name]), f"{ENV_PREFIX}{name.upper()}"
    by_option = run_settings(None, [f"{name}={text}"])
    monkeypatch.setenv(variable, text)
    by_variable = run_settings(None)
    monkeypatch.delenv(variable)
    file = table(tmp_path, f"[settings]\n{name} = {json.dumps(WANTED[name])}\n")
    by_file = run_settings(file)
    for found, where in ((by_option, f"--set {name}"), (by_variable, variable), (by_file, f"{file}: settings.{name}")):
        assert found.context == RoutingContext.model_validate({name: WANTED[name]})
        assert found.context != RoutingContext()
        assert found.sources == {name: where}
        assert found.context.model_fields_set == {name}


def test_variables_only_restrict_other_users(monkeypatch: pytest.MonkeyPatch):
    for name, text in (
        ("ALLOW_WRITE_TOOLS", "true"),
        ("CONFIDENCE_THRESHOLD", "0.2"),
        ("ALLOWED_TOOLS", "ai.*"),
        ("PALETTE_SIZE", "7"),
    ):
        monkeypatch.setenv(f"{ENV_PREFIX}{name}", text)
    found = run_settings(None, ["allow_execute_tools=true"])
    assert found.context.allow_write_tools
    others = found.for_others
    assert {name: getattr(others, name) for name in others.model_fields_set} == {
        "allow_execute_tools": True,
        "allowed_tools": ("ai.*",),
        "palette_size": 7,
    }
    assert found.ignored_sources == ("PACKETGATE_ALLOW_WRITE_TOOLS", "PACKETGATE_CONFIDENCE_THRESHOLD")


@pytest.mark.parametrize(("written", "holds"), [("true", set()), ("false", {"allow_write_tools"})])
def test_the_switch_of_the_file_only_restricts_other_users(tmp_path: Path, written: str, holds: set[str]):
    found = run_settings(table(tmp_path, f"[settings]\nallow_write_tools = {written}\npalette_size = 7\n"))
    assert not found.for_others.allow_write_tools
    assert found.for_others.model_fields_set == {"palette_size", *holds}
