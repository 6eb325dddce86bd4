"""`packetgate tools` and `packetgate doctor`."""

import json
from importlib.metadata import version

from support.builtin_tools import ALL, RISKS
from support.command_line import CommandLine


def test_tools_lists_risk_and_brief(cli: CommandLine) -> None:
    done = cli.run("tools")
    assert done.status == 0
    rows = {
        line.split()[0]: line.split()[1] for line in done.out.splitlines() if line.startswith(("ai.", "embedding."))
    }
    assert rows == RISKS
    assert "max_lines" not in done.out


def test_a_tool_is_shown_in_full_under_any_spelling(cli: CommandLine) -> None:
    for name in ("ai.read", "ai_read"):
        done = cli.run("tools", name)
        assert "max_lines" in done.out
        assert "ai.write" not in done.out


def test_tools_for_scripts(cli: CommandLine) -> None:
    tools = json.loads(cli.run("tools", "--json").out)
    assert [tool["name"] for tool in tools] == ALL
    assert all(tool["input_schema"]["type"] == "object" for tool in tools)


def test_doctor_is_content_out_of_the_box(cli: CommandLine) -> None:
    done = cli.run("doctor")
    assert done.status == 0
    assert "reflex (no model)" in done.out
    assert str(cli.home) in done.out.replace("\n", "").replace(" ", "") or "packetgate.db" in done.out


def test_doctor_names_what_is_missing_and_how_to_mend_it(cli: CommandLine) -> None:
    servers = {"gone": {"command": "no-such-program"}, "sick": {"command": "sh", "args": ["-c", "echo no token >&2"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"builtin": True, "mcpServers": servers}))
    done = cli.run("doctor")
    assert done.status == 1
    words = " ".join(done.out.split())
    assert "no-such-program" in words
    assert "not installed, or not on PATH" in words
    assert "no token" not in words  # what a server prints is its log's alone
    assert "no token" in (cli.home / "logs" / "sick.log").read_text()
    assert "ai 13 tools" in words


def test_doctor_says_what_programs_are_kept_from(cli: CommandLine) -> None:
    def found(**variables: str) -> dict[str, str]:
        findings = json.loads(cli.run("doctor", "--json", **variables).out)
        return next(finding for finding in findings if finding["what"] == "sandbox")

    assert found()["verdict"] in {"ok", "note"}
    assert found(PACKETGATE_SANDBOX="off")["how"].startswith("none: all it starts ends with it")
    (cli.folder / "packetgate.toml").write_text('sandbox = "off"\n')
    assert found()["verdict"] == "note"


def test_doctor_says_what_is_wrong_with_a_model(cli: CommandLine) -> None:
    done = cli.run("doctor", "--lite", "llamacpp:no.gguf")
    assert done.status == 1
    assert "no.gguf" in done.out


def test_a_dead_server_is_told_beside_the_answer_of_the_others(cli: CommandLine) -> None:
    servers = {"gone": {"command": "no-such-program"}}
    (cli.folder / "mcp.json").write_text(json.dumps({"builtin": True, "mcpServers": servers}))
    done = cli.run("ask", "Read plan.txt")
    assert done.status == 0
    assert "The gate opens at seven." in done.out
    assert "gone" in done.out
    assert "no-such-program" in done.out


def test_the_version_is_told(cli: CommandLine) -> None:
    assert cli.run("--version").out == f"packetgate {version('packetgate')}\n"
