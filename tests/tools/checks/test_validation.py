import socket
from typing import Any

import pytest
from support.tool_specs import PATH, a_tool, files_catalogue

from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import MAX_CORRECTIONS, check_call, check_params
from packetgate.tools.spec.tool_spec import canonical_json

FILES = files_catalogue()
OFFERED = frozenset({"files.read_file", "files.write_file"})
WRITE = {"path": "a.txt", "content": "x"}


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("files.read_file", {"path": "", "lines": 3}),
        ("files.write_file", {**WRITE, "mode": "append"}),
    ],
)
def test_a_valid_call_has_no_problems(name: str, params: dict[str, Any]):
    assert check_call(name, params, OFFERED, FILES) == []


@pytest.mark.parametrize(
    ("name", "problem", "named"),
    [
        ("shell.run_command", "off_palette", "`files.read_file`, `files.write_file`"),
        ("readFile", "alias", "`files.read_file`"),
        ("files.reed_file", "unknown_tool", "`files.read_file`"),
        ("", "unknown_tool", "none"),
        ("mail.send", "unknown_tool", "`mail.send`"),
    ],
)
def test_a_tool_off_the_palette_is_refused(name: str, problem: str, named: str):
    palette = OFFERED | {"mail.send"} if name == "mail.send" else OFFERED
    (found,) = check_call(name, {"path": "a.txt"}, palette, FILES)
    assert (found.tool_name, found.problem) == (name, problem)
    assert named in found.message
    (found,) = check_call("files.read_file", {}, frozenset(), Catalogue())
    assert found.problem == "unknown_tool"


@pytest.mark.parametrize(
    ("params", "problem", "named"),
    [
        ({**WRITE, "contents": "x"}, "unknown_parameter", "`contents`. Did you mean `content`?"),
        ({**WRITE, "zzz": 1}, "unknown_parameter", "`zzz`"),
        ({"content": "x"}, "missing_parameter", "`path` (The file to use.)"),
        ({**WRITE, "path": None}, "invalid_value", "`path`"),
        ({**WRITE, "mode": "overwrite"}, "invalid_value", "`mode`"),
        ({**WRITE, "mode": "x" * 100_000}, "invalid_value", "`mode`"),
    ],
)
def test_a_problem_names_the_parameter_and_the_tools_parameters(params: dict[str, Any], problem: str, named: str):
    (found,) = check_call("files.write_file", params, OFFERED, FILES)
    assert (found.tool_name, found.problem) == ("files.write_file", problem)
    assert named in found.message
    assert found.message.endswith(FILES["files.write_file"].signature() + ".")
    assert len(found.message) < 500


def test_all_problems_are_reported_at_once():
    found = check_call("files.write_file", {"pth": "a.txt", "mode": "x"}, OFFERED, FILES)
    assert [(one.problem, one.message.split("`")[3]) for one in found] == [
        ("unknown_parameter", "pth"),
        ("missing_parameter", "path"),
        ("missing_parameter", "content"),
        ("invalid_value", "mode"),
    ]
    many = check_params(FILES["files.read_file"], {f"x{i}": 0 for i in range(50)})
    assert len(many) == MAX_CORRECTIONS


def test_a_nested_problem_is_named_by_its_path():
    spec = a_tool("a.b", edits={"type": "array", "items": {"type": "object", "properties": {"to": {"type": "string"}}}})
    (found,) = check_params(spec, {"edits": [{"to": "x"}, {"to": 5}]})
    assert 'cannot take this value of `edits.1.to`: 5 is not of type "string"' in found.message


@pytest.mark.parametrize("extra", [True, {}, {"type": "string"}])
def test_extra_parameters_are_valid_if_the_schema_allows_them(extra: object):
    spec = a_tool("a.b", schema={"type": "object", "properties": {"path": PATH}, "additionalProperties": extra})
    assert check_params(spec, {"anything": "x"}) == []


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "strin"}, '"strin" is not'),
        ({"type": "object", "properties": ["path"]}, 'is not of type "object"'),
        ({"type": "object", "properties": {"path": {"enum": 5}}}, '5 is not of type "array"'),
        ({"type": "object", "properties": {"path": {"pattern": "["}}}, '"[" is not a "regex"'),
        ({"type": "object", "properties": {"path": {"$ref": "#/$defs/Gone"}}}, "'/$defs/Gone' does not exist"),
        ({"type": "object", "properties": {"path": {"anyOf": 5}}}, '5 is not of type "array"'),
    ],
)
def test_a_broken_schema_refuses_every_call(schema: dict[str, Any], why: str):
    schema = {**schema, "additionalProperties": True}
    found = check_params(a_tool("a.b", schema=schema), {"path": "x"})
    assert [one.problem for one in found] == ["invalid_value"]
    assert why in found[0].message


def test_an_external_reference_is_never_fetched():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        (found,) = check_params(a_tool("a.b", path={"$ref": address}), {"path": "x"})
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert address in found.message


NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "child": {"$ref": "#"}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("keywords", "reference"),
    [
        ({}, {"$ref": "#"}),
        ({"$id": "tool"}, {"$ref": "#"}),
        ({"$id": "tool"}, {"$ref": "tool"}),
        ({"$id": "https://example.org/tool"}, {"$ref": "https://example.org/tool"}),
        ({"$id": "urn:x:y"}, {"$ref": "#"}),
        ({"$anchor": "node"}, {"$ref": "#node"}),
        ({"$dynamicAnchor": "node"}, {"$dynamicRef": "#node"}),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://a/b"}, {"$ref": "#"}),
        (
            {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": True},
            {"$recursiveRef": "#"},
        ),
    ],
)
def test_references_to_the_root_are_resolved(keywords: dict[str, Any], reference: dict[str, Any]):
    spec = a_tool("tree.add", schema={**NODE, **keywords, "properties": {**NODE["properties"], "child": reference}})
    assert check_params(spec, {"name": "a", "child": {"name": "b", "child": {"name": "c"}}}) == []
    assert "is a required property" in check_params(spec, {"name": "a", "child": {}})[0].message
    (unknown,) = check_params(spec, {"name": "a", "child": {"name": "b", "x": 1}})
    assert "'x' was unexpected" in unknown.message
    assert [one.problem for one in check_params(spec, {"x": 1})] == ["unknown_parameter", "missing_parameter"]


def test_canonical_json_is_equal_exactly_when_the_arguments_are():
    one, other = {"a": 1, "b": {"d": [1, 2], "c": "ü"}}, {"b": {"c": "ü", "d": [1, 2]}, "a": 1}
    assert canonical_json(one) == canonical_json(other)
    values = [1, "1", True, None, [1], [1, 2], [2, 1], {}, {"a": 1}]
    different: list[dict[str, Any]] = [{}, *({"a": value} for value in values)]
    assert len({canonical_json(params) for params in different}) == len(different)


def test_a_hostile_pattern_terminates_and_accepts_nothing():
    spec = a_tool("a.b", word={"type": "string", "pattern": "(?<!a)(a+)+\\1$"})
    (found,) = check_params(spec, {"word": "a" * 40 + "b"})
    assert found.problem == "invalid_value"
