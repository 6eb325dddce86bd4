"""A model at a scripted server, and the features of the requests sent to it."""

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage
from support.scripted_openai import ScriptedOpenAI

from packetgate.models.model import ModelAnswer
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.models.options import ModelOptions
from packetgate.models.schemas import CONFIDENCE, AnswerForm, object_schema, text_schema

VERDICT = object_schema(approved={"type": "boolean"}, confidence=CONFIDENCE, reason=text_schema(80))
FORM = AnswerForm("verdict", VERDICT)
GOOD = '{"approved":true,"confidence":0.9,"reason":"fine"}'
SAMPLING = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 50}


async def model_at(
    server: ScriptedOpenAI,
    *,
    is_openai: bool = False,
    seconds: float = 10,
    options: ModelOptions | None = None,
) -> OpenAICompatible:
    """Return a model without knowledge about the server, with this timeout."""
    endpoint = Endpoint(server.base_url, None, timeout=seconds)
    chat = await asyncio.to_thread(connect, "scripted", endpoint, options)
    return OpenAICompatible(chat, options, is_openai=is_openai)


async def ask_form(model: OpenAICompatible, form: AnswerForm = FORM) -> ModelAnswer:
    """Ask for an answer in the form."""
    return await model.answer([HumanMessage("Judge. Answer in JSON.")], form, sampling=model.sampling(**SAMPLING))


def asked_with(request: dict[str, Any]) -> str:
    """Return how a request enforces its format, in one word."""
    if "tools" in request:
        return "tool_call"
    format_ = request.get("response_format", {"type": "prompt"})
    return format_["type"] + ("+schema" if "schema" in format_ else "")


def means(server: ScriptedOpenAI) -> list[str]:
    """Return how all requests so far enforce their format."""
    return [asked_with(request) for request in server.requests]
