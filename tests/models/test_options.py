"""Options of models: their sources, their precedence, and the errors about unknown options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.scripted_openai import ScriptedOpenAI

from packetgate.models.options import ModelOptions, file_options
from packetgate.models.pool import ModelPool
from packetgate.state.errors import ConfigError, InputError


@dataclass(frozen=True)
class Case:
    """The settings of `lite`, and the result: options, or an error message."""

    uri: str
    result: Mapping[str, Any] | str
    variables: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)


LOW = {"reasoning_effort": "low"}
CASES = [
    Case("openai:m", {}),
    Case("openai:m?reasoning_effort=low&seed=7&temperature=0", {**LOW, "seed": 7, "temperature": 0.0}),
    Case('openai:m?extra_body={"reasoning":{"max_tokens":9}}', {"extra_body": {"reasoning": {"max_tokens": 9}}}),
    Case("openai:m", LOW, {"LITE_REASONING_EFFORT": "low", "PRIME_SEED": "1"}),
    Case("openai:m", {"seed": 3}, {"LITE_SEED": " "}, {"seed": 3}),
    Case("openai:m?seed=1", {"seed": 1, "top_p": 0.5}, {"LITE_SEED": "2", "LITE_TOP_P": "0.5"}, {"seed": 3}),
    Case("llamacpp:a.gguf?n_ctx=0&thinking_budget=9", {"n_ctx": 0, "thinking_budget": 9}),
    Case("reflex", {}, {"LITE_SEED": "2"}, {"seed": 3}),
    Case("openai:m?reasoning_efort=low", "openai:m: reasoning_efort: .*did you mean reasoning_effort"),
    Case("openai:m?n_ctx=9", "openai:m: n_ctx: unknown option 'n_ctx': openai models take temperature, .*extra_body"),
    Case("llamacpp:a.gguf?timeout=9", "timeout.*llamacpp models take .*n_threads"),
    Case("llamacpp:a.gguf?n_ctx=many", "n_ctx: Input should be a valid integer, not 'many'"),
    Case("openai:m?enable_thinking=yes", "enable_thinking: Input should be a valid boolean, not 'yes'"),
    Case("openai:m?extra_body=3", "extra_body: Input should be an object, not '3'"),
    Case("openai:m", "PACKETGATE_LITE_SEAD: unknown option 'sead': did you mean seed", {"LITE_SEAD": "1"}),
    Case("openai:m", "p.toml: models.lite.seed: Input should be a valid integer", table={"seed": "1"}),
    Case("openai:m", "p.toml: models.lite.sed: unknown option 'sed': did you mean seed", table={"sed": 1}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.uri[:40]} {case.result}"[:80])
def test_options_have_a_precedence_and_errors_name_them(case: Case, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    for name, value in case.variables.items():
        monkeypatch.setenv(f"PACKETGATE_{name}", value)

    def read() -> ModelOptions:
        tables = file_options({"lite": dict(case.table)}, "p.toml").get("lite", {})
        given = ModelPool(case.uri, from_file={"lite": tables}).given["lite"]
        return ModelOptions.model_validate({name: one.value for name, one in given.items()})

    if isinstance(case.result, str):
        with pytest.raises(ConfigError, match=case.result):
            read()
    else:
        assert read() == ModelOptions.model_validate(case.result)


@pytest.mark.parametrize("models", [3, {"lite": 3}, {"lyte": {"seed": 1}}])
def test_values_that_are_not_tables_are_refused(models: object):
    with pytest.raises(ConfigError, match=r"p\.toml: models"):
        file_options(models, "p.toml")


async def test_options_are_sent_with_every_request(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    monkeypatch.setenv("PACKETGATE_PRIME_EXTRA_BODY", '{"chat_template_kwargs": {"style": "terse"}, "top_k": 20}')
    monkeypatch.setenv("PACKETGATE_PRIME_ENABLE_THINKING", "false")
    lite, prime = [await ModelPool("openai:m?reasoning_effort=low").get(role) for role in ("lite", "prime")]
    assert lite is not None is not prime is not lite
    scripted_openai.script("a", "b", "c")
    await lite.chat.ainvoke("Hello", extra_body={"top_k": 1})
    await prime.chat.ainvoke("Hello", extra_body={"top_k": 1, "min_p": 2})
    _ = [chunk async for chunk in prime.chat.astream("Hello")]
    first, *others = scripted_openai.requests
    assert (first["reasoning_effort"], first["top_k"]) == ("low", 1)
    assert "chat_template_kwargs" not in first
    for request in others:
        assert request["chat_template_kwargs"] == {"enable_thinking": False, "style": "terse"}
        assert (request["reasoning_effort"], request["top_k"]) == ("low", 20)
    assert others[0]["min_p"] == 2


async def test_openai_refuses_enable_thinking(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with pytest.raises(InputError, match="openai:m: enable_thinking needs a server with chat templates: use reasoning"):
        await ModelPool("openai:m?enable_thinking=true").get("lite")


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"OPENAI_API_KEY": "sk-a-wrong-one"}, "OPENAI_API_KEY"),
        ({"PACKETGATE_LITE_API_KEY": "sk-a-wrong-one", "OPENAI_API_KEY": "sk-b"}, "PACKETGATE_LITE_API_KEY"),
        ({"PACKETGATE_LITE_BASE_URL": "", "OPENAI_API_KEY": "sk-right"}, "PACKETGATE_LITE_API_KEY"),
    ],
)
async def test_a_refused_key_names_its_variable(
    variables: dict[str, str], named: str, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    scripted_openai.api_key = "sk-right"
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_openai.base_url)
    for name, value in variables.items():
        monkeypatch.setenv(name, value or scripted_openai.base_url)
    with pytest.raises(InputError, match=rf"HTTP 401.: check {named}$"):
        await ModelPool("openai:m").check("lite")
