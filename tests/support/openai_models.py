"""A model at a scripted server, and the features of the requests to this model."""

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage
from support.scripted_openai import ScriptedOpenAI

from packetgate.models.model import Model, ModelAnswer, OfferedTool
from packetgate.models.openai.compatible import OpenAICompatible
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.models.options import ModelOptions
from packetgate.models.pool import ModelSource
from packetgate.models.schemas import object_schema

READ = OfferedTool("read", "Read a file.", object_schema(path={"type": "string", "minLength": 1}))
FULL, SIMPLE = {"path": {"type": "string", "minLength": 1}}, {"path": {"type": "string"}}
"""The properties of `READ`, and their simple form."""
GOOD = '{"approved":true,"confidence":0.9,"reason":"fine"}'
SAMPLING = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 50}


async def model_at(
    server: ScriptedOpenAI,
    *,
    is_openai: bool = False,
    seconds: float = 10,
    options: ModelOptions | None = None,
) -> OpenAICompatible:
    """Return a model that knows nothing about the server, with this timeout."""
    endpoint = Endpoint(server.base_url, None, timeout=seconds)
    chat = await asyncio.to_thread(connect, "scripted", endpoint, options)
    return OpenAICompatible(chat, options, is_openai=is_openai)


def source_of(model: Model) -> ModelSource:
    """Return a source of this model."""

    async def source() -> Model:
        return model

    return source


async def ask_tools(model: OpenAICompatible, *tools: OfferedTool) -> ModelAnswer:
    """Offer tools, of which one is `READ` if none is given."""
    return await model.call([HumanMessage("Read a")], tools or [READ], max_calls=1, sampling=model.sampling(**SAMPLING))


def sent_schemas(server: ScriptedOpenAI) -> list[dict[str, Any]]:
    """Return the properties of the first tool of each request so far; empty for a request without tools."""
    return [
        next((one["function"]["parameters"]["properties"] for one in request.get("tools", ())), {})
        for request in server.requests
    ]
