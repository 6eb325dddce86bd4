"""The settings of a run: from options, variables and `packetgate.toml`, by one rule."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
from support.command_line import CommandLine

from packetgate.connectors.run_settings import PREFIX, run_settings
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError
from packetgate.state.packet import read_packet
from packetgate.state.setting_values import describe_setting

ROOT = Path(__file__).parents[2]
WRITE = 'Write "hello" to notes.txt'


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)


def table(folder: Path, text: str) -> Path:
    file = folder / "packetgate.toml"
    file.write_text(text)
    return file


def held(cli: CommandLine, *options: str, **variables: str) -> dict[str, tuple[Any, str]]:
    """Return what `packetgate settings` shows of what somebody gave."""
    done = cli.run("settings", "--json", *options, **variables)
    assert done.status == 0, done.err
    told = json.loads(done.out)["settings"]
    assert [one["name"] for one in told] == list(RoutingContext.model_fields)
    return {one["name"]: (one["value"], one["from"]) for one in told if one["from"] != "default"}


def test_options_stand_over_variables_over_the_file_over_defaults(cli: CommandLine):
    assert held(cli) == {}
    table(cli.folder, "[settings]\npalette_size = 10\nmax_reinjections = 1\nallow_write_tools = true\n")
    assert held(
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
    assert held(cli)["palette_size"] == (10, "packetgate.toml: settings.palette_size")
    shown = cli.run("settings", PACKETGATE_ALLOW_EXECUTE_TOOLS="true").out
    assert re.search(r"^allow_execute_tools +true +PACKETGATE_ALLOW_EXECUTE_TOOLS", shown, re.MULTILINE)
    assert "counts on Discord and for the proxy only as far as it allows less" in shown


def test_a_turn_runs_under_them(cli: CommandLine):
    table(cli.folder, "[settings]\nconfidence_threshold = 0.65\n")
    done = cli.run("ask", "--json", "--set", "max_parallel_calls=2", "Read plan.txt", PACKETGATE_PALETTE_SIZE="20")
    assert done.status == 0, done.err
    settings = read_packet(done.out).governance.settings
    assert (settings.confidence_threshold, settings.max_parallel_calls, settings.palette_size) == (0.65, 2, 20)


def test_writes_are_switched_on_by_each_place_and_asked_about(cli: CommandLine):
    assert cli.run("ask", WRITE).status == 0
    assert cli.run("ask", "--set", "allow_write_tools=true", WRITE).status == 3
    assert cli.run("ask", WRITE, PACKETGATE_ALLOW_WRITE_TOOLS="1").status == 3
    table(cli.folder, "[settings]\nallow_write_tools = true\n")
    assert cli.run("ask", WRITE).status == 3
    assert cli.run("ask", "--no-writes", WRITE).status == 0
    assert cli.run("ask", WRITE, PACKETGATE_ALLOW_WRITE_TOOLS="false").status == 0
    assert not (cli.folder / "notes.txt").exists()


def test_a_limit_holds_for_chat_and_for_the_answer_too(cli: CommandLine):
    asked = cli.run("ask", "--session", "s", "--allow-writes", WRITE)
    assert asked.status == 3
    only_reads = {"PACKETGATE_ALLOWED_TOOLS": "ai.read"}
    cli.run("answer", "yes", "--session", "s", **only_reads)
    assert not (cli.folder / "notes.txt").exists()
    said = cli.run("chat", "--json", "--set", "enabled=false", given=b"Read plan.txt\n")
    assert "gate opens at seven" not in said.out
    assert json.loads(said.out)["packet"]["governance"]["settings"]["enabled"] is False


def test_doctor_and_calibrate_go_by_them(cli: CommandLine):
    table(cli.folder, "[settings]\nconfidence_threshold = 0.9\n")
    found = {one["what"]: one["how"] for one in json.loads(cli.run("doctor", "--json").out)}
    assert found["settings"] == f"1 of {len(RoutingContext.model_fields)} set; `packetgate settings` shows from where"
    assert json.loads(cli.run("calibrate", "--replay", "--json").out)["threshold"] == 0.9
    table(cli.folder, "[settings]\nconfidence_threshold = 9\n")
    done = cli.run("doctor", "--json")
    bad = [one["how"] for one in json.loads(done.out) if one["verdict"] == "bad"]
    assert (done.status, bad) == (
        1,
        ["packetgate.toml: settings.confidence_threshold: it takes a number from 0 up to 1"],
    )
    table(cli.folder, "[setings]\nenabled = false\n")
    bad = [one["how"] for one in json.loads(cli.run("doctor", "--json").out) if one["verdict"] == "bad"]
    assert len(bad) == 1


@dataclass(frozen=True)
class Bad:
    id: str
    says: tuple[str, ...]
    options: tuple[str, ...] = ()
    file: str = ""
    variables: dict[str, str] = field(default_factory=dict)


def chosen(*pairs: str) -> tuple[str, ...]:
    return tuple(word for pair in pairs for word in ("--set", pair))


BAD = [
    Bad("unknown option", ("--set confidence:", "confidence_threshold?"), chosen("confidence=0.8")),
    Bad("like no other", ("--set zzz:", "there are enabled, "), chosen("zzz=1")),
    Bad("no value", ("--set enabled:", "key=value"), chosen("enabled")),
    Bad("yes", ("--set allow_write_tools:", "true or false, not 'yes'"), chosen("allow_write_tools=yes")),
    Bad("too much", ("--set palette_size:", "whole number from 1 up to 256, not '300'"), chosen("palette_size=300")),
    Bad("a half", ("--set palette_size:", "whole number"), chosen("palette_size=1.5")),
    Bad("no number", ("--set confidence_threshold:", "from 0 up to 1, not 'nan'"), chosen("confidence_threshold=nan")),
    Bad("no time", ("--set ask_timeout_s:", "above 0 up to 31,536,000"), chosen("ask_timeout_s=0")),
    Bad("no choice", ("--set on_low_confidence:", "ask or skip, not 'run'"), chosen("on_low_confidence=run")),
    Bad("no tools", ("--set allowed_tools:", "none of them empty"), chosen("allowed_tools=")),
    Bad("half a list", ("--set allowed_tools:", "a list"), chosen('allowed_tools=["ai.read"')),
    Bad(
        "twice",
        ("--set palette_size=2", "contradicts --set palette_size=1"),
        chosen("palette_size=1", "palette_size=2"),
    ),
    Bad(
        "a switch too",
        ("--set allow_write_tools=false", "--allow-writes"),
        ("--allow-writes", *chosen("allow_write_tools=false")),
    ),
    Bad("no switch", ("=true contradicts --no-commands",), ("--no-commands", *chosen("allow_execute_tools=true"))),
    Bad(
        "variable",
        ("PACKETGATE_CONFIDENCE_THRESHOLD:", "from 0 up to 1, not 'high'"),
        variables={"PACKETGATE_CONFIDENCE_THRESHOLD": "high"},
    ),
    Bad("empty variable", ("PACKETGATE_ALLOWED_TOOLS:", "empty"), variables={"PACKETGATE_ALLOWED_TOOLS": ""}),
    Bad(
        "on",
        ("PACKETGATE_ALLOW_EXECUTE_TOOLS:", "true or false, not 'on'"),
        variables={"PACKETGATE_ALLOW_EXECUTE_TOOLS": "on"},
    ),
    Bad(
        "misspelt variable",
        ("PACKETGATE_ALLOWED_TOOL:", "PACKETGATE_ALLOWED_TOOLS?"),
        variables={"PACKETGATE_ALLOWED_TOOL": "ai.read"},
    ),
    Bad("small letters", ("packetgate_enabled:", "PACKETGATE_ENABLED?"), variables={"packetgate_enabled": "false"}),
    Bad(
        "misspelt in the file",
        ("settings.alowed_tools:", "did you mean allowed_tools"),
        file="[settings]\nalowed_tools = ['ai.read']",
    ),
    Bad("text for a number", ("settings.palette_size:", "whole number"), file="[settings]\npalette_size = '3'"),
    Bad("a number for yes", ("settings.allow_write_tools:", "true or false"), file="[settings]\nallow_write_tools = 1"),
    Bad("a date", ("settings.ask_timeout_s:", "a number"), file="[settings]\nask_timeout_s = 2026-01-01"),
    Bad("no table", ("settings: it must be a table",), file="settings = 1"),
    Bad("misspelt table", ("setings", "`[settings]`"), file="[setings]\nenabled = false"),
    Bad("outside", ("confidence_threshold", "`[settings]`"), file="confidence_threshold = 0.9"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_what_cannot_be_used_is_one_line(case: Bad, cli: CommandLine):
    table(cli.folder, case.file)
    for command in (("ask", "Hello"), ("settings",)):
        done = cli.run(*command, *case.options, **case.variables)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert done.err.startswith("packetgate: ")
        for words in case.says:
            assert words in done.err


def test_other_variables_of_ours_are_no_slips(monkeypatch: pytest.MonkeyPatch):
    folders = ("packetgate", "benchmarks", "tests/support")
    source = "".join(file.read_text() for folder in folders for file in (ROOT / folder).rglob("*.py"))
    ours = {*re.findall(r"\bPACKETGATE_[A-Z_]*[A-Z]\b", source)} - {
        f"{PREFIX}{one.upper()}" for one in RoutingContext.model_fields
    }
    roles = {f"{PREFIX}{role}_{what}" for role in ("LITE", "PRIME", "EMBEDDINGS") for what in ("BASE_URL", "API_KEY")}
    for name in ours | roles:
        monkeypatch.setenv(name, "1")
    assert run_settings(None).sources == {}


def test_no_variable_means_two_things():
    assert not RoutingContext.model_fields.keys() & Settings.model_fields.keys()


def other_than_default(name: str) -> Any:
    """Return a value that the setting takes, and does not have by itself; a turn runs under all of them together."""
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
    """Return a value as options and variables have it."""
    return ",".join(value) if isinstance(value, list) else json.dumps(value).strip('"')


@pytest.mark.parametrize("place", ["options", "variables", "file"])
def test_every_setting_reaches_the_turn_from_each_place(place: str, cli: CommandLine):
    options, variables = [], {}
    for name, value in WANTED.items():
        if place == "options":
            options += ["--set", f"{name}={written(value)}"]
        elif place == "variables":
            variables[f"{PREFIX}{name.upper()}"] = written(value)
    if place == "file":
        lines = (f"{name} = {json.dumps(value)}" for name, value in WANTED.items())
        table(cli.folder, "\n".join(["[settings]", *lines]))
    done = cli.run("ask", "--json", *options, "Read plan.txt", **variables)
    assert done.err == ""
    held = json.loads(done.out)["governance"]["settings"]
    assert held == pytest.approx(held | WANTED)
    assert not [name for name in WANTED if held[name] == RoutingContext.model_fields[name].default]


@pytest.mark.parametrize("name", RoutingContext.model_fields)
def test_every_setting_is_read_from_each_place(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text, variable = written(WANTED[name]), f"{PREFIX}{name.upper()}"
    assert describe_setting(RoutingContext, name)
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


@pytest.mark.parametrize("text", ['["ai.read", "b"]', "ai.read,b", " ai.read , b "])
def test_lists_are_json_or_have_commas(text: str):
    assert run_settings(None, [f"allowed_tools={text}"]).context.allowed_tools == ("ai.read", "b")


def test_an_empty_list_is_written_as_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = table(tmp_path, "[settings]\nallowed_tools = ['ai.read']\n")
    monkeypatch.setenv("PACKETGATE_ALLOWED_TOOLS", "[]")
    found = run_settings(file)
    assert found.context.allowed_tools == ()
    assert found.for_others.allowed_tools == ("ai.read",)
    assert found.set_aside == ("PACKETGATE_ALLOWED_TOOLS",)


def test_where_others_ask_a_variable_may_only_allow_less(monkeypatch: pytest.MonkeyPatch):
    for name, text in (
        ("ALLOW_WRITE_TOOLS", "true"),
        ("CONFIDENCE_THRESHOLD", "0.2"),
        ("ALLOWED_TOOLS", "ai.*"),
        ("PALETTE_SIZE", "7"),
    ):
        monkeypatch.setenv(f"{PREFIX}{name}", text)
    found = run_settings(None, ["allow_execute_tools=true"])
    assert found.context.allow_write_tools
    others = found.for_others
    assert {name: getattr(others, name) for name in others.model_fields_set} == {
        "allow_execute_tools": True,
        "allowed_tools": ("ai.*",),
        "palette_size": 7,
    }
    assert found.set_aside == ("PACKETGATE_ALLOW_WRITE_TOOLS", "PACKETGATE_CONFIDENCE_THRESHOLD")


@pytest.mark.parametrize(("written", "holds"), [("true", set()), ("false", {"allow_write_tools"})])
def test_nor_does_the_files_switch_switch_on_for_them(tmp_path: Path, written: str, holds: set[str]):
    found = run_settings(table(tmp_path, f"[settings]\nallow_write_tools = {written}\npalette_size = 7\n"))
    assert not found.for_others.allow_write_tools
    assert found.for_others.model_fields_set == {"palette_size", *holds}


def test_no_variable_takes_back_what_the_file_forbids_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PACKETGATE_ALLOW_WRITE_TOOLS", "true")
    others = run_settings(table(tmp_path, "[settings]\nallow_write_tools = false\n")).for_others
    assert (others.allow_write_tools, others.model_fields_set) == (False, {"allow_write_tools"})


def test_switches_that_agree_are_no_contradiction():
    found = run_settings(None, ["allow_write_tools=1", "allow_write_tools=true"], allow_write_tools=True)
    assert found.sources == {"allow_write_tools": "--allow-writes"}


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no\.toml: no such file"):
        run_settings(tmp_path / "no.toml")
