"""Text that is nearly JSON is parsed without changed values, or not at all."""

import pytest

from packetgate.tools.text.nearly_json import MAX_NEARLY_JSON, read_arguments, read_nearly_json

PARIS = {"city": "Paris"}


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Paris"}',
        ' {"city": "Paris",}\n',
        '{"city": "Paris" /* the capital */}',
        '{\n  // where\n  "city": "Paris"\n}',
        "{'city': 'Paris'}",
        "{city: 'Paris'}",
        '```json\n{"city": "Paris"}\n```',
        '```\n{"city": "Paris"}```',
        '{"city": "Paris"}{"city": "Paris"}',
        '{"city": "Paris"}\n{ "city": "Paris" }',
        '"{\\"city\\": \\"Paris\\"}"',
        '{"city": "Paris"}\n\nI look it up.',
        '[{"city": "Paris"}]',
        "{\u201ccity\u201d: \u201cParis\u201d}",
    ],
)
def test_each_form_has_the_same_arguments(text: str):
    assert read_arguments(text) == PARIS


@pytest.mark.parametrize("text", ["", " \n", "null", '""', '"null"', "{}", "None"])
def test_nothing_means_no_arguments(text: str):
    assert read_arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a', True, None, 1.5]", ["a", True, None, 1.5]),
        ("('a', 'b')", ["a", "b"]),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ("{'a': 'it\\'s'}", {"a": "it's"}),
        ('{"p": "C:/new"}', {"p": "C:/new"}),
        (r'{"p": "C:\Users\new"}', {"p": r"C:\Users\new"}),
        (r'{"p": "C:\temp\", "n": 1}', {"p": "C:\\temp\\", "n": 1}),
        (r'{"p": "C:\\Users\\new",}', {"p": r"C:\Users\new"}),
    ],
)
def test_values_are_those_of_the_text(text: str, value: object):
    assert read_nearly_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b"',
        "[a, b]",
        '{"city": "Par',
        '{"city": "Paris"} and {"city": "Rome"}',
        '{"city": "Paris"}{"city": "Rome"}',
        '{"city": "Paris", "city": "Rome"}',
        "{'city': 'Paris', 'city': 'Rome'}",
        "{'city': 'Pa' 'ris'}",
        "{1: 2}",
        "{'a': {1, 2}}",
        '{"n": NaN}',
        '{"n": 1e999}',
        f'{{"n": {2**64}}}',
        "{n: 0x10000000000000000}",
        r'{"s": "\ud800"}',
        "{'n': 1e999}",
        '{"p": "\\Users\\new"}',
        "{'p': 'data\\x41'}",
        "open('a.txt').read()",
        "[" * 100_000,
        f"{{'a': '{'x' * MAX_NEARLY_JSON}'}}",
    ],
)
def test_anything_else_is_not_read(text: str):
    with pytest.raises(ValueError, match=r"."):
        read_nearly_json(text)


@pytest.mark.parametrize("text", ["[1]", "7", '"Paris"'])
def test_arguments_are_an_object(text: str):
    with pytest.raises(ValueError, match=r"not a JSON object|not JSON"):
        read_arguments(text)
