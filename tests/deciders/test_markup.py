"""Tool markup is cut out whole; text that only looks a little like it stays."""

import pytest

from deciders.markup import strip_markup

LEAKS = {
    # family: <tool_call> and its kin
    "A<tool_call>{'name': 'x'}</tool_call>B": ("AB", 1),
    "A<tool_call>\n{}\n</tool_call>\nB": ("A\nB", 1),
    "A <TOOL_CALL>x</TOOL_CALL> B": ("A  B", 1),
    'A<tool_call id="1">x</tool_call>B': ("AB", 1),
    "A<tool_call>{'name': 'x'": ("A", 1),
    "A<tool_call>1</tool_call>B<tool_call>2</tool_call>C": ("ABC", 2),
    "A<function_call>x</function_call>B": ("AB", 1),
    "A<tool_response>x</tool_response>B": ("AB", 1),
    "A<tool_use>x</tool_use>B": ("AB", 1),
    '<invoke name="read"><parameter name="p">x</parameter></invoke>B': ("B", 1),
    "A</tool_call>B": ("AB", 1),
    # family: <think>
    "<think>Let me see.</think>A": ("A", 1),
    "<thinking>Let me see.</thinking>A": ("A", 1),
    "<reasoning>Let\nme\nsee.</reasoning>A": ("A", 1),
    "A<think>I never stop": ("A", 1),
    "The user wants this.</think>A": ("A", 1),
    "A</think>": ("A", 1),
    "<think><tool_call>x</tool_call></think>A": ("A", 2),
    # family: <function=...>
    "A<function=read>{}</function>B": ("AB", 1),
    "A<function=read>{}": ("A", 1),
    # family: <|...|>
    "A<|python_tag|>read('x')<|eom_id|>B": ("AB", 1),
    "A<|python_tag|>read('x')": ("A", 1),
    "A<|start of tool call|>x<|end of tool call|>B": ("AB", 1),
    "A<| Start of Functions Tool Call |>x<| End of Functions Tool Call |>B": ("AB", 1),
    "A<|start of tool call|>x": ("A", 1),
    "A<|Tool Call|>B": ("AB", 1),
    "A<|eot_id|>": ("A", 1),
    "A<\uff5ctool\u2581calls\u2581begin\uff5c>x<\uff5ctool\u2581calls\u2581end\uff5c>B": ("AB", 1),
    "A<\uff5ctool\u2581call\u2581begin\uff5c>x": ("A", 1),
    # family: [TOOL_CALLS]
    'A[TOOL_CALLS][{"name": "x"}][/TOOL_CALLS]B': ("AB", 1),
    'A[TOOL_CALLS][{"name": "x"}]': ("A", 1),
    # family: fenced pseudo-calls
    'A\n```json\n{"tool": "x", "params": {}}\n```\nB': ("A\n\nB", 1),
    'A\n```\n{"name": "x", "arguments": {"a": {"b": 1}}}\n```': ("A", 1),
    'A\n```json\n[{"name": "x", "args": {}}, {"name": "y", "args": {}}]\n```': ("A", 1),
    "A\n```tool_code\nread('x')\n```": ("A", 1),
    "A\n```tool_call\nread('x')": ("A", 1),
    # a call and nothing else
    '{"tool": "x", "params": {}}': ("", 1),
    ' [{"name": "x", "arguments": {}}] ': ("", 1),
    '{"selected_tool": "x", "input": {}}': ("", 1),
    # nested, and put together by cutting
    "A<tool_<think>x</think>call>{}</tool_call>B": ("AB", 2),
    "A<<think></think>tool_call>{}</tool_call>B": ("AB", 2),
    'A\n```json\n<think>x</think>{"tool": "x", "params": {}}\n```': ("A", 2),
    '<think>x</think>{"tool": "x", "params": {}}': ("", 2),
}


@pytest.mark.parametrize(("leak", "left"), LEAKS.items())
def test_leak(leak: str, left: tuple[str, int]):
    clean = strip_markup(leak)
    assert (clean.text, clean.violations) == left


@pytest.mark.parametrize("leak", LEAKS)
def test_nothing_is_left_to_cut(leak: str):
    assert strip_markup(strip_markup(leak).text).violations == 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "Apples.", "a < b and c > d", "I think so. <b>Bold</b>", "<toolbox>", "x <| y |> z"),
        '{"name": "Ada", "age": 36}',
        '{"params": {}}',
        "[1, 2]",
        "[]",
        "{broken",
        'Here it is:\n```json\n{"name": "Ada", "age": 36}\n```',
        "```python\nprint('tool')\n```",
        "```\nread_file\n```",
        'The config is {"tool": "x", "params": {}}, as you see.',
        "Use `tool_call` in [brackets].",
        "a\n\n\n\nb",
        "[" * 100_000,
    ],
)
def test_stays(text: str):
    assert strip_markup(text) == strip_markup(text)
    clean = strip_markup(text)
    assert (clean.text, clean.violations) == (text, 0)
