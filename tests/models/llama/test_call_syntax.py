"""The syntax of calls, derived from models' kinds of chat templates."""

import json

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from packetgate.models.call_syntax import DEFAULT_SYNTAX, CallSyntax, syntax_from_template
from packetgate.models.decoding import begins_call
from packetgate.models.llama.chat import measured_calls
from packetgate.models.llama.engine import EngineAnswer
from packetgate.models.llama.prompt import as_plain_messages

ENDS = ("<|end|>",)
CALLS = [("files.read", {"path": 'a "b".txt'}), ("clock.now", {})]


def syntax(call: str, before: str = "", between: str = "", after: str = "") -> CallSyntax | None:
    """Return the syntax of a template that writes each call in the form `call`."""
    environment = ImmutableSandboxedEnvironment()
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}" + before +
        "{% for c in m.tool_calls %}" + call + "{% if not loop.last %}" + between + "{% endif %}{% endfor %}" + after +
        "{% endif %}<|end|>{% endfor %}<|assistant|>"
    )  # fmt: skip
    return syntax_from_template(lambda chat: template.render(messages=chat), ENDS)


JSON = '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}'
HERMES = f"<tool_call>\n{JSON}\n</tool_call>"
KINDS = {
    "tags": syntax(HERMES, between="\n"),
    "list": syntax(JSON, before="[TOOL_CALLS][", between=", ", after="]"),
    "fence": syntax("<call>{{ c.function.name }}\n```json\n{{ c.function.arguments | tojson }}\n```</call>"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_written_calls_are_read_back(kind: str):
    found = KINDS[kind]
    assert found is not None
    written = found.write(CALLS)
    assert [(one.name, one.arguments) for one in found.read(written)] == CALLS
    for one in found.read(written):
        assert written[slice(*one.name_at)] == one.name
        assert json.loads(written[slice(*one.arguments_at)]) == one.arguments


def test_a_call_without_arguments_is_measured():
    answer = EngineAnswer(DEFAULT_SYNTAX.write(CALLS), "stop", 1, 0)
    assert [{*one.probabilities} for one in measured_calls(DEFAULT_SYNTAX, answer)] == [{"path"}, set()]


def test_the_marks_come_from_the_template():
    assert KINDS["tags"] == DEFAULT_SYNTAX
    assert KINDS["list"] == CallSyntax('[TOOL_CALLS][{"name": "', '", "arguments": ', '}, {"name": "', "}]")


@pytest.mark.parametrize(
    "call",
    [
        "",
        "{{ c.function.name }}",
        "<function={{ c.function.name }}>{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}",
        "{{ c.function.name }}({{ c.function.name }}, {{ c.function.arguments | tojson }})",
    ],
)
def test_a_template_without_json_calls_has_no_syntax(call: str):
    assert syntax(call) is None


def test_truncated_calls_are_not_read():
    assert DEFAULT_SYNTAX.read(DEFAULT_SYNTAX.write(CALLS)[:-30])[1:] == []
    assert DEFAULT_SYNTAX.read("Sure: " + DEFAULT_SYNTAX.write(CALLS)) == []


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("", None),
        ("  ", None),
        ('{"name"', True),
        (" <tool_call>", True),
        ("[TOOL_CALLS]", True),
        ("``", None),
        ("```json", None),
        ('```json\n{"name"', True),
        ("```python\nprint(1)", False),
        ("`a`", False),
        ("Hello", False),
    ],
)
def test_the_beginning_of_a_call_is_recognised(text: str, begins: bool | None):
    assert begins_call(text) is begins


def test_tools_are_described_in_text():
    tool = {"type": "function", "function": {"name": "clock.now", "description": "Tells the time.", "parameters": {}}}
    called = {"function": {"name": "clock.now", "arguments": {}}}
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "content": "12:00"},
    ]
    spoken = as_plain_messages(chat, [tool])
    assert spoken[0]["content"].startswith("Be brief.\n\n")
    assert "Tells the time." in spoken[0]["content"]
    assert [one["role"] for one in spoken] == ["system", *("user", "assistant") * 3, "user"]
    assert spoken[-2]["content"] == DEFAULT_SYNTAX.write([("clock.now", {})])
    assert "12:00" in spoken[-1]["content"]
