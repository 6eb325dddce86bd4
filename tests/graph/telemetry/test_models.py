"""Tokens and times of models are told by the model's name."""

from support.graphs import session
from support.notebook import Notebook
from support.openai_models import model_at
from support.prompts import call, review
from support.scripted_openai import ScriptedOpenAI
from support.telemetry import Telemetry, told

from packetgate.deciders.choosing import language_deciders
from packetgate.models.model import Model
from packetgate.models.source import ModelSource

READ_A = call("notebook.read_note", name="a")
BY_MODEL = ("select_tool", "review_selection", "respond")


def at(server: ScriptedOpenAI, name: str, *, is_openai: bool = False) -> ModelSource:
    async def source() -> Model:
        model = await model_at(server, is_openai=is_openai)
        model.chat.model_name = name  # type: ignore[attr-defined]
        return model

    return source


def asked(telemetry: Telemetry) -> dict[str, tuple[str | None, str | None]]:
    """Return, by stage, model and provider of the tokens counted."""
    return {
        one.attributes["packetgate.stage"]: (
            one.attributes.get("gen_ai.request.model"),
            one.attributes.get("gen_ai.provider.name"),
        )
        for one in telemetry.measured()["gen_ai.client.token.usage"]
    }


async def test_each_role_by_its_model(notebook: Notebook, telemetry: Telemetry, scripted_openai: ScriptedOpenAI):
    deciders = language_deciders(at(scripted_openai, "small"), at(scripted_openai, "large", is_openai=True))
    scripted_openai.script(READ_A, review(0.9), "Done.", "It says apples.")
    async with session(deciders, notebook) as talk:
        assert (await talk.say("Read note a")).response.candidate == "It says apples."
    lite, prime = ("small", None), ("large", "openai")
    assert asked(telemetry) == dict(zip(BY_MODEL, (lite, prime, prime), strict=True))
    for stage, (model, _) in zip(BY_MODEL, (lite, prime, prime), strict=True):
        assert {told(span)["gen_ai.request.model"] for span in telemetry.named(f"packetgate {stage}")} == {model}
    assert "gen_ai.request.model" not in told(telemetry.stage("execute_tool"))
