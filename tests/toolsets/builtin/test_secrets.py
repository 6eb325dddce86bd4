"""Lists, counts and searches omit files with secrets, and files that a rule closes, unless a call names them."""

from collections import Counter

import pytest

from packetgate.tools.policy.rules import Effect, Rule
from packetgate.tools.text.roles import secret_reference_in
from packetgate.toolsets.builtin.files import Root
from packetgate.toolsets.builtin.tree import walk
from packetgate.toolsets.servers.opening import builtin_servers

SECRET = "hush-hush-4417"
WITHHELD = ".env server.pem id_rsa mcp.json packetgate.toml secrets.yaml .ssh/config a/.env.local".split()


@pytest.fixture
def files(folder):
    for name in [*WITHHELD, "plain.txt"]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"alarm {SECRET if name != 'plain.txt' else 'clock'}\n")
    return folder


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("ai.list", {"recursive": True, "hidden": True, "pattern": "*e*"}),
        ("ai.list", {"pattern": "*.{pem,toml,json,yaml}", "recursive": True}),
        ("ai.find", {"name": "server"}),
        ("ai.find", {"name": ".e[n]v"}),
        ("ai.find", {"name": "{plain,id_rsa,x}"}),
        ("ai.search", {"query": "alarm"}),
        ("ai.search", {"query": "alarm", "pattern": ".*"}),
        ("ai.count", {"text": "alarm"}),
        ("embedding.query", {"query": f"alarm {SECRET}"}),
    ],
    ids=str,
)
async def test_secret_files_are_skipped(call, files, tool, arguments):
    assert not any(secret_reference_in(value, name) for name, value in arguments.items())  # such calls need approval
    result = await call(tool, **arguments)

    text = f"{result.output} {result.error} {result.structured}"
    assert SECRET not in text.replace(repr(arguments.get("query")), "").replace(str(arguments.get("query")), "")
    assert not [name for name in WITHHELD if f"{name} " in text or f"{name}:" in text or f"'{name}'" in text]


async def test_skipped_files_are_counted(succeed, files):
    assert "[not shown: 5 secret or denied]" in await succeed("ai.list")
    assert "5 secret or denied" in await succeed("embedding.query", query="alarm")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("ai.list", {"pattern": ".env"}),
        ("ai.list", {"path": ".ssh"}),
        ("ai.find", {"name": "server.pem"}),
        ("ai.find", {"name": "{plain.txt,server.pem,x}"}),
        ("ai.search", {"query": "alarm", "path": ".env"}),
        ("ai.search", {"query": "alarm", "path": ".ssh"}),
        ("ai.count", {"path": "mcp.json"}),
        ("ai.read", {"path": ".env"}),
    ],
    ids=str,
)
async def test_named_secret_files_are_shown(call, files, tool, arguments):
    assert any(secret_reference_in(value, name) for name, value in arguments.items())

    result = await call(tool, **arguments)

    assert any(name in result.output + str(result.structured) for name in WITHHELD) or "alarm" in result.output


async def test_naming_one_secret_file_opens_no_other(call, files):
    result = await call("ai.search", query="alarm", pattern=".env")

    assert {place["path"] for place in result.structured["places"]} == {".env"}


@pytest.mark.parametrize("tool", ["ai.read", "ai.edit", "ai.append", "ai.count", "ai.search", "ai.write"])
async def test_links_to_secret_files_are_refused(fail, files, unchanged, tool):
    (files / "innocent.txt").symlink_to(".env")
    unchanged()
    more = {
        "ai.edit": {"old_text": "alarm", "new_text": "x", "dry_run": False},
        "ai.append": {"text": "x", "dry_run": False},
        "ai.search": {"query": "alarm"},
        "ai.write": {"content": "x", "mode": "overwrite", "dry_run": False},
    }

    error = await fail(tool, path="innocent.txt", **more.get(tool, {}))

    assert error == "'innocent.txt' leads to .env, which may hold keys or secrets: give that path instead"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("ai.write", {"content": "x", "mode": "overwrite"}),
        ("ai.edit", {"old_text": "alarm", "new_text": "x"}),
        ("ai.edit", {"old_text": "not in it", "new_text": "x"}),
        ("ai.append", {"text": "x"}),
    ],
    ids=str,
)
async def test_dry_runs_show_no_secret(succeed, files, tool, arguments):
    answer = await succeed(tool, path=".env", **arguments)

    assert "no difference shown" in answer
    assert SECRET not in answer


@pytest.mark.parametrize("effect", [Effect.DENY, Effect.ASK])
@pytest.mark.parametrize("rule", [{"tool": "ai.read"}, {"tool": "ai.*"}, {"server": "ai"}])
async def test_files_that_a_rule_withholds_are_skipped(folder, effect, rule):
    (folder / "private").mkdir()
    (folder / "private" / "diary.txt").write_text(f"alarm {SECRET}\n")
    (folder / "plain.txt").write_text("alarm clock\n")
    servers = builtin_servers(folder, rules=[Rule(effect=effect, arguments={"path": "private/**"}, **rule)])
    calls = [
        ("ai", "list", {"recursive": True}),
        ("ai", "search", {"query": "alarm"}),
        ("ai", "find", {"name": "diary"}),
        ("ai", "count", {}),
        ("embedding", "query", {"query": "alarm"}),
        ("ai", "edit", {"path": "private/diary.txt", "old_text": "alarm", "new_text": "x"}),
    ]

    for server, tool, arguments in calls:
        result = await servers[server].call(tool, arguments)
        assert SECRET not in result.output
        assert "diary.txt " not in result.output


def test_other_rules_withhold_nothing(folder):
    rules = [
        Rule(effect=Effect.ALLOW, tool="ai.read", arguments={"path": "a/*"}),
        Rule(effect=Effect.DENY, tool="ai.write", arguments={"path": "a/*"}),
        Rule(effect=Effect.DENY, tool="ai.read"),
    ]

    assert not Root(folder, rules).withholds("a/b.txt")


def test_links_are_not_followed(folder):
    (folder / "away").symlink_to(folder.parent)
    (folder / "loop").symlink_to(folder)
    (folder / "in").mkdir()

    assert [entry.path for entry in walk(Root(folder), folder, Counter())] == ["away", "in", "loop"]
