"""A hundred turns of a model that writes calls in all forms: only written calls run, and unread calls are reported."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import CutOff, HttpError, Reply, tool_calls

from packetgate import create_router, reads
from packetgate.state.errors import ModelError

FILES = {
    "a.txt": "eleven apples\nsix pears",
    "docs/plan.md": "paint the door",
    "logs/server.log": "ok\nERROR disk full",
}
TASKS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Read a.txt", "ai.read", {"path": "a.txt"}),
    ("Show me docs/plan.md", "ai.read", {"path": "docs/plan.md"}),
    ("Search ERROR in logs/server.log", "ai.search", {"query": "ERROR", "path": "logs/server.log"}),
    ("How many words does a.txt have?", "ai.count", {"path": "a.txt"}),
    ("List docs", "ai.list", {"path": "docs"}),
)


def read_forms(name: str, params: dict[str, Any]) -> Iterator[tuple[str, list[Reply]]]:
    """Yield replies that are parsed as a call to the tool with these arguments."""
    text, call = json.dumps(params), json.dumps({"name": name, "arguments": params})
    tags = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in params.items())
    native = {
        "plain": text,
        "trailing comma": f"{text[:-1]},}}",
        "comment": f"{text[:-1]} // the file\n}}",
        "single quotes": text.replace('"', "'"),
        "fence": f"```json\n{text}\n```",
        "twice": text + text,
        "null": f'{text[:-1]}, "encoding": null}}',
    }
    yield from ((form, [tool_calls((name, written))]) for form, written in native.items())
    yield "numbered name", [tool_calls((f"{name}:0", text))]
    yield "words before", [tool_calls((name, text), content="Let me look into it.")]
    left = {
        "hermes": f"<tool_call>\n{call}\n</tool_call>",
        "qwen": f"<tool_call>\n<function={name}>\n{tags}</function>\n</tool_call>",
        "mistral": f"[TOOL_CALLS][{call}]",
        "llama": "<|python_tag|>" + json.dumps({"name": name, "parameters": params}),
        "harmony": f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{text}<|call|>",
        "bare": call,
    }
    yield from ((form, [written]) for form, written in left.items())


def unread_forms(name: str, params: dict[str, Any]) -> Iterator[tuple[str, list[Reply]]]:
    """Yield replies from which no call can be parsed."""
    text = json.dumps(params)
    yield "broken", [tool_calls((name, text[:-4]))] * 2
    yield "unknown tool", [tool_calls(("fetch_everything", text))] * 2
    yield "cut markup", [f'<tool_call>\n{{"name": "{name}", "arguments": {text[:-4]}'] * 2
    yield "empty", ["", ""]
    yield "only claimed", ["I have done it."]
    yield "server error", [HttpError(500, "broken")] * 6
    yield "cut answer", [CutOff("I will")] * 6


@pytest.mark.slow
@pytest.mark.reflex
async def test_only_written_calls_run_and_unread_calls_are_reported(
    scripted_openai: ScriptedOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content)
    wrong, turns = list[str](), 0
    async with create_router("openai:scripted", root=tmp_path) as router:
        for request, tool, params in TASKS:
            name = tool.replace(".", "__")
            forms = [(*one, True) for one in read_forms(name, params)] + [
                (*one, False) for one in unread_forms(name, params)
            ]
            for number, (form, replies, is_read) in enumerate(forms):
                scripted_openai.script(*replies, *["Done."] * 4)
                turns += 1
                try:
                    turn = await router.ainvoke(request, thread=f"{tool} {number % 4}")
                except ModelError as error:
                    ran, is_reported = [], "scripted" in str(error)
                else:
                    ran = [(call.tool_name, call.params) for call in turn.calls if call.result is not None]
                    is_reported = "no tool was called" in turn.answer or "without a language model" in turn.answer
                if ran != ([(tool, params)] if is_read else []) or not (is_read or is_reported):
                    wrong.append(f"{form}: {request}: {ran}")
    assert turns >= 100
    assert wrong == []


@pytest.mark.parametrize(
    ("path", "written"),
    [
        (r"C:\temp\new", r'{"path": "C:\temp\new"}'),
        (r"D:\backup\fotos", r'{"path": "D:\backup\fotos"}'),
        (r"C:\Users\Ana", r'{"path": "C:\Users\Ana"}'),
        (r"\\nas\team\bin", r'{"path": "\\nas\team\bin"}'),
        (r"C:\Program Files\nodejs", r'{"path": "C:\\\\Program Files\\\\nodejs"}'),
    ],
)
async def test_a_windows_path_reaches_the_tool_as_the_user_wrote_it(
    path: str, written: str, scripted_openai: ScriptedOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    listed: list[str] = []

    @reads
    def list_folder(path: str) -> str:
        """List the files in a folder."""
        listed.append(path)
        return "report.txt"

    scripted_openai.script(tool_calls(("functions__list_folder", written)), "It has a report.")
    async with create_router("openai:scripted", [list_folder], root=tmp_path) as router:
        await router.ainvoke(f"List the folder {path}")
    assert listed == [path]
