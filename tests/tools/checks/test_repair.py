"""Unambiguous mistakes are repaired. Other calls stay unchanged, and are refused with an explanation."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from support.evidence import traced as traced_params
from support.origins import words
from support.tool_specs import PATH, a_tool, files_catalogue

from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.checking import repair_call
from packetgate.tools.checks.validation import MAX_CORRECTIONS, check_call, check_params

READ, RUN = "files.read_file", "shell.run_command"
FILES = Catalogue(
    [
        *files_catalogue().values(),
        a_tool("notes.read_file", "Read a note.", required=("path",), path=PATH),
        a_tool("notes.count", "Count the notes."),
        a_tool("notes.find", required=("start_date",), start_date={"type": "string"}, end_date={"type": "string"}),
        a_tool("files.pack", required=("arguments",), arguments={"type": "object"}),
        a_tool("files.open", schema={"properties": {"n": {"type": "integer"}}, "additionalProperties": True}),
    ]
)
PATHS = {"path": "a.txt"}


@dataclass(frozen=True)
class Case:
    name: str
    params: dict[str, Any]
    meant: str
    expected: dict[str, Any]
    problems: list[str] = field(default_factory=list)


REPAIRED = [
    *(
        Case(name, PATHS, READ, PATHS, ["alias"])
        for name in (
            "files_read_file",
            "Files.ReadFile",
            "files__read_file",
            "mcp__files__read_file",
            "functions.files.read_file",
            "functions.mcp__files__read_file",
            "default_api.files.read_file",
            "functions.files__read_file:0",
        )
    ),
    Case("run_command", {"argv": ["ls"]}, RUN, {"argv": ["ls"]}, ["alias"]),
    Case("functions.run_command", {"argv": "ls"}, RUN, {"argv": ["ls"]}, ["alias", "coerced"]),
    *(
        Case(wrapper, params, READ, PATHS, ["wrapper"])
        for wrapper, params in (
            ("call_mcp_tool", {"name": READ, "arguments": PATHS}),
            ("use_mcp_tool", {"server_name": "files", "tool_name": "read_file", "arguments": '{"path": "a.txt"}'}),
            ("call_tool", {"tool": "mcp__files__read_file", "params": PATHS}),
            ("mcp.call", {"server": "files", "tool": READ, "args": PATHS}),
            ("tools/call", {"toolName": "files.readFile", "input": PATHS}),
            ("anything_at_all", {"function": READ, "tool_input": PATHS}),
        )
    ),
    Case("call_tool", {"name": "notes.count", "arguments": {}}, "notes.count", {}, ["wrapper"]),
    *(
        Case(READ, {key: value}, READ, PATHS, ["wrapper"])
        for key, value in (("arguments", PATHS), ("params", PATHS), ("input", '{"path": "a.txt"}'))
    ),
    Case(READ, {"tool": READ, "arguments": PATHS}, READ, PATHS, ["wrapper"]),
    *(
        Case(READ, {name: "a.txt"}, READ, PATHS, ["misspelt_parameter"]) for name in ("pth", "paths", "Path", "PATH")
    ),
    Case("notes.find", {"startDate": "1"}, "notes.find", {"start_date": "1"}, ["misspelt_parameter"]),
    Case("notes.find", {"strat_date": 1}, "notes.find", {"start_date": "1"}, ["misspelt_parameter", "coerced"]),
    Case(READ, {**PATHS, "lines": "5"}, READ, {**PATHS, "lines": 5}, ["coerced"]),
    *(
        Case(READ, {**PATHS, "lines": value}, READ, PATHS, ["absent"])
        for value in (None, "", " ", "null", "None", "undefined", {}, [])
    ),
    Case("files.open", {"n": "5", "m": "5"}, "files.open", {"n": 5, "m": "5"}, ["coerced"]),
    Case(
        "call_tool",
        {"name": "files_read_file", "arguments": {"pth": "a.txt", "lines": "5"}},
        READ,
        {**PATHS, "lines": 5},
        ["wrapper", "misspelt_parameter", "coerced"],
    ),
]  # fmt: skip

UNCHANGED = [
    ("read_file", PATHS),
    ("other.read_file", PATHS),
    ("other.files.read_file", PATHS),
    ("files.read_file\0", PATHS),
    ("files.read_\u200bfile", PATHS),
    ("mcp." * 10_000 + READ, PATHS),
    ("", {}),
    ("call_tool", {"name": "files.burn", "arguments": PATHS}),
    ("call_tool", {"name": "read_file", "arguments": PATHS}),
    ("call_tool", {"server": "shell", "name": READ, "arguments": PATHS}),
    ("call_tool", {"name": READ, "arguments": PATHS, "reason": "because"}),
    ("call_tool", {"name": READ, "arguments": PATHS, "timeout": 5}),
    ("call_tool", {"name": READ, "arguments": "a.txt"}),
    ("call_tool", {"name": READ, "arguments": None}),
    ("describe_tool", {"name": READ, "options": {}}),
    ("call_tool", {"name": READ, "arguments": PATHS, "params": PATHS}),
    (READ, {"arguments": PATHS, "path": "b.txt"}),
    (READ, {"tool": RUN, "arguments": PATHS}),
    (READ, {"arguments": {"file": "a.txt"}}),
    (READ, {"nested": PATHS}),
    (READ, {"file": "a.txt"}),
    (READ, {**PATHS, "pth": "b.txt"}),
    (READ, {"pth": "a.txt", "paht": "b.txt", "paths": "c.txt"}),
    (READ, {"pth": ["a.txt"]}),
    (READ, {**PATHS, "lines": "5.7"}),
    (READ, {**PATHS, "dry_run": False}),
    ("notes.find", {"date": "1"}),
    ("notes.find", {"from_date": "1"}),
    ("notes.find", {"start_dote_date": "1"}),
]
VALID = [
    (READ, PATHS),
    (READ, {"path": "5", "lines": 5.0}),
    ("files.write_file", {**PATHS, "content": "true", "mode": "append"}),
    ("files.pack", {"arguments": PATHS}),
    ("files.open", {"arguments": {"n": "5"}}),
]


@pytest.mark.parametrize("case", REPAIRED, ids=str)
def test_unambiguous_mistakes_are_repaired(case: Case):
    call = repair_call(case.name, case.params, FILES)
    assert (call.tool_name, call.params) == (case.meant, case.expected)
    assert [one.problem for one in call.repairs] == case.problems
    assert all(one.is_repaired and one.message for one in call.repairs)
    assert check_call(case.name, case.params, frozenset(FILES), FILES)
    assert check_call(call.tool_name, call.params, frozenset(FILES), FILES) == []
    assert repair_call(call.tool_name, call.params, FILES).repairs == ()


@pytest.mark.parametrize(("name", "params"), UNCHANGED, ids=lambda value: str(value)[:60])
def test_ambiguous_mistakes_are_refused(name: str, params: dict[str, Any]):
    call = repair_call(name, params, FILES)
    assert (call.tool_name, call.params, call.repairs) == (name, params, ())
    assert check_call(name, params, frozenset(FILES), FILES)


@pytest.mark.parametrize("value", [None, {}, []])
def test_a_required_argument_without_a_value_is_missing(value: Any):
    call = repair_call("files.write_file", {**PATHS, "content": value}, FILES)
    assert call.params == PATHS
    (problem,) = check_call(call.tool_name, call.params, frozenset(FILES), FILES)
    assert problem.problem == "missing_parameter"


@pytest.mark.parametrize(("name", "params"), VALID)
def test_a_valid_call_is_unchanged(name: str, params: dict[str, Any]):
    assert check_params(FILES[name], params) == []
    call = repair_call(name, params, FILES)
    assert (call.tool_name, call.params, call.repairs) == (name, params, ())


@pytest.mark.parametrize(
    ("schema", "read", "written", "meant"),
    [
        ({"type": "string"}, 1.1, "1.10", "1.10"),
        ({"type": "string"}, {"a": 1}, '{\n "a": 1}', '{\n "a": 1}'),
        ({"type": ["string", "null"]}, None, "null", None),
        ({"type": "integer"}, 5, "5", 5),
        ({}, [1], "[1]", [1]),
        ({"type": "array", "items": {"type": "integer"}}, 5, "5", [5]),
    ],
)
def test_a_value_without_a_type_is_read_by_the_schema(schema: dict[str, Any], read: Any, written: str, meant: Any):
    catalogue = Catalogue([a_tool("a.b", value=schema)])
    assert repair_call("a.b", {"value": read}, catalogue, {"value": written}).params == {"value": meant}


@pytest.mark.parametrize(
    ("schema", "sent", "kept"),
    [
        ({"type": "string"}, "None", {}),
        ({"type": "string"}, "null", {"value": "null"}),  # from the user's words
        ({"type": "string"}, "", {"value": ""}),
        ({"type": "string", "format": "date"}, "", {}),
        ({"type": "string", "enum": ["none", "all"]}, "none", {"value": "none"}),
        ({"type": ["string", "null"]}, "undefined", {}),
        ({"type": "object", "properties": {"depth": {"type": "integer"}}}, {"depth": None}, {"value": {}}),
        ({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}, [{"n": None}],
         {"value": [{}]}),
        ({"type": "array", "items": {"type": "string"}}, [None], {"value": [None]}),
    ],
)  # fmt: skip
def test_a_value_that_means_none_is_omitted(schema: dict[str, Any], sent: Any, kept: dict[str, Any]):
    catalogue = Catalogue([a_tool("a.b", value=schema)])
    assert repair_call("a.b", {"value": sent}, catalogue, words="set it to null").params == kept


@pytest.mark.parametrize("text", ["red, blue", '"a", "b"', "('a', 'b')", "- a\n- b", "a; b", 'tags: ["a"]', "see [a]"])
def test_a_text_that_may_be_a_list_is_not_one_item(text: str):
    catalogue = Catalogue([a_tool("a.b", value={"type": "array", "items": {"type": "string"}})])
    assert repair_call("a.b", {"value": text}, catalogue).params == {"value": text}


def test_a_path_in_a_list_that_is_text_keeps_the_users_spelling():
    catalogue = Catalogue([a_tool("a.b", value={"type": "array", "items": {"type": "string"}})])
    call = repair_call("a.b", {"value": r"['C:\\temp\\new']"}, catalogue, words=r"pack C:\temp\new")
    assert call.params == {"value": [r"C:\temp\new"]}


def test_a_prefix_that_is_a_server_is_kept():
    both = Catalogue([a_tool("mcp.list", "List."), a_tool("files.read", "Read.")])
    assert repair_call("mcp.read", {}, both).tool_name == "mcp.read"
    assert repair_call("mcp.list", {}, both).repairs == ()


def test_repaired_values_keep_their_origin():
    call = repair_call(READ, {"pth": "a.txt", "lines": "5"}, FILES)
    traced = traced_params(call.params, FILES[READ], "Read 5 lines of a.txt", [])
    assert words(traced) == {"path": "user", "lines": "user"}
    call = repair_call("call_tool", {"name": READ, "arguments": '{"path": "b.txt", "lines": "7"}'}, FILES)
    traced = traced_params(call.params, FILES[READ], "Read it", [("web.fetch", "see b.txt, 7 lines")])
    assert words(traced) == {"path": "text:web.fetch", "lines": "text:web.fetch"}


def test_repairs_are_limited_in_number_and_length():
    spec = a_tool("a.b", **{f"p{number}": {"type": "array"} for number in range(20)})
    call = repair_call("a.b", {f"p{number}": "x" * 10_000 for number in range(20)}, Catalogue([spec]))
    assert len(call.repairs) == MAX_CORRECTIONS
    assert all(len(one.message) < 250 for one in call.repairs)
