"""Answers to a chat client's own prompts, without tools or session: from the prime model alone, or without a model.

Only the prompts of known clients are recognised, by their first words. Any other prompt is a user's message.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.connectors.serve.protocol import AnswerRequest, ApiError, WireMessage
from packetgate.models.answers import complete
from packetgate.models.json_text import read_json_at
from packetgate.models.links import with_inert_links
from packetgate.models.model import Model
from packetgate.models.stripping import strip_markup
from packetgate.state.base import TokenUsage
from packetgate.state.errors import PacketgateError
from packetgate.state.printing import shorten

TASK_PROMPTS = (
    "### Task:\nGenerate ",  # Open WebUI: titles, tags
    "### Task:\nSuggest ",  # Open WebUI: follow-up questions
    "### Task:\nAnalyze ",  # Open WebUI: search queries
    "### Task:\nYou are an autocompletion system",  # Open WebUI
    "Create a concise, 3-5 word title with an emoji",  # Open WebUI until 0.5
    "Your task is to reflect the speaker's likely facial expression",  # Open WebUI: an emoji
    "You have been provided with a set of responses from various models",  # Open WebUI: several answers made one
    "Query: History:\n",  # Open WebUI: a choice of its own tools
    "Provide a concise, 5-word-or-less title",  # LibreChat
    "Analyze this conversation and provide:\n1. The detected language",  # LibreChat
    "Please generate a concise title (max 40 characters)",  # LibreChat
    "Generate a title for this conversation",  # opencode
)
MAX_OUTPUT_TOKENS = 500
TEMPERATURE = 0.3
TITLE_CHARS = 40
MAX_BRACES = 20
"""Maximum number of braces of a text at which an object may begin."""

_QUOTED_CHAT = re.compile(r"<chat_history>.*?</chat_history>", re.DOTALL)
_USER_LINE = re.compile(r"^(?:USER|User|Human): *(\S.*)", re.MULTILINE)
_MESSAGES = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage, "developer": SystemMessage}


def is_background_prompt(request: AnswerRequest) -> bool:
    """Whether a request is a client's own prompt: it offers no tools, and its first message is a task prompt."""
    messages = [message for message in request.wire_messages if message.role not in {"system", "developer"}]
    is_new = bool(messages) and all(message.role == "user" for message in messages)
    return is_new and not request.tools and messages[0].words.lstrip().startswith(TASK_PROMPTS)


async def answer_background(
    messages: Sequence[WireMessage], model_source: Callable[[], Awaitable[Model | None]]
) -> tuple[str, TokenUsage]:
    """Return the answer and its token usage. If the prompt shows a JSON object, the answer has the same form.

    Without a model, a title is the beginning of the conversation, and lists are empty. Raise ApiError if the model
    fails.
    """
    words = [message.words for message in messages if message.role == "user"]
    form = next(_objects(_QUOTED_CHAT.sub("", words[0])), None)
    said = _USER_LINE.findall(words[0]) or words[1:] or ["New chat"]
    try:
        model = await model_source()
        if model is None:
            return _filled(form, said[0], said[-1]), TokenUsage()
        prompt: list[BaseMessage] = [
            _MESSAGES[one.role](one.words) for one in messages if one.role in _MESSAGES and one.words
        ]
        answer = await complete(model, prompt, user_words="", temperature=TEMPERATURE, max_tokens=MAX_OUTPUT_TOKENS)
    except PacketgateError as error:
        raise ApiError(" ".join(str(error).split()), status=502, code=error.code) from error
    text = with_inert_links(strip_markup(answer.text).text, "").strip()
    if form is not None:
        written = next((one for one in _objects(text) if one.keys() & form.keys()), None)
        text = _filled(form, text, text) if written is None else json.dumps(written, ensure_ascii=False)
    return text, answer.usage


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield JSON objects in a text that are not empty."""
    for brace in islice(re.finditer(r"\{", text), MAX_BRACES):
        value = read_json_at(text, brace.start()).value
        if isinstance(value, dict) and value:
            yield value


def _filled(form: Mapping[str, Any] | None, title: str, newest: str) -> str:
    """Return an object of a form: the title, the newest message for another text, and empty values; or the title."""
    title, newest = shorten(title, TITLE_CHARS), "" if form and "text" in form else newest.strip()
    if form is None:
        return title
    texts = {name: title if name == "title" else newest for name, shown in form.items() if isinstance(shown, str)}
    return json.dumps({name: type(shown)() for name, shown in form.items()} | texts, ensure_ascii=False)
