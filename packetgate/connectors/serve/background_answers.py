"""The answer to a client's own prompt: by the model, with no tool and no question, or else out of the quote."""

import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.connectors.serve.background import Background
from packetgate.connectors.serve.background_words import BLOCK, LABEL
from packetgate.connectors.serve.protocol import WireMessage
from packetgate.models.completion import complete
from packetgate.models.markup.links import inert
from packetgate.models.markup.stripping import strip_markup
from packetgate.models.model import Model
from packetgate.state.base import TokenUsage
from packetgate.state.errors import PacketgateError
from packetgate.state.printing import compact_json, shorten
from packetgate.tools.text.words import query_terms

MAX_TOKENS = 500
TEMPERATURE = 0.3
TITLE_WORDS, TITLE_CHARS, TAGS = 6, 50, 3

_FIELD = re.compile(r"\{\s*\"(\w+)\"\s*:\s*(.)")
_ARRAY = re.compile(r"\bjson (?:array|list)\b", re.IGNORECASE)
_TAGS = re.compile(r"tag|topic|keyword|label|categor|theme|标签|タグ|태그", re.IGNORECASE)
_CONTINUES = re.compile(r"complet|continu|hole|fim_|fim-", re.IGNORECASE)
_NO_TEXT = {"role", "id", "type", "name"}
_KINDS = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage, "developer": SystemMessage}

log = logging.getLogger(__name__)


async def answer_background(
    asked: Background, messages: Sequence[WireMessage], source: Callable[[], Awaitable[Model | None]]
) -> tuple[str, TokenUsage]:
    """Return the model's answer to the client's own messages and what it took; what fails is answered by extraction."""
    given: list[BaseMessage] = [
        _KINDS[one.role](one.words) for one in messages if one.role in _KINDS and one.words.strip()
    ]
    try:
        model = await source()
        if model is not None and await model.fits(given, MAX_TOKENS):
            said = await complete(model, given, user_words="", temperature=TEMPERATURE, max_tokens=MAX_TOKENS)
            if text := inert(strip_markup(said.text).text, "").strip():
                return text, said.usage
    except PacketgateError as error:
        log.warning("a client's background prompt is answered without the model: %s", error)
    return extracted(asked), TokenUsage()


def extracted(asked: Background) -> str:
    """Return an answer made of the quoted words alone, in the form that the prompt shows."""
    field = _FIELD.search(asked.instruction)
    if field is None and _ARRAY.search(asked.instruction):
        return compact_json(_value(asked, asked.instruction, is_list=True))
    if field is None:
        value = _value(asked, asked.instruction, is_list=False)
        return ", ".join(value) if isinstance(value, list) else value
    return compact_json({field[1]: _value(asked, field[1], is_list=field[2] == "[")})


def _value(asked: Background, name: str, *, is_list: bool) -> Any:
    if is_list:
        return _tags(asked.quoted) if _TAGS.search(name) else []
    if _CONTINUES.search(asked.instruction) and not re.search("title", name, re.IGNORECASE):
        return ""
    return _title(asked.quoted)


def _title(quoted: str) -> str:
    lines = [LABEL.sub("", line).strip(" \"'*`") for line in _plain(quoted).splitlines()]
    first = next((line for line in lines if re.search(r"\w", line) and not line.endswith(":")), "")
    return shorten(" ".join(first.split()[:TITLE_WORDS]), TITLE_CHARS).rstrip(" .,:;?!") or "Chat"


def _tags(quoted: str) -> list[str]:
    counted = Counter(_words(_plain(quoted)))
    return [word for word, _ in counted.most_common(TAGS)] or ["General"]


def _words(text: str) -> list[str]:
    return [word for line in text.splitlines() for word in query_terms(LABEL.sub("", line)) if len(word) > 2]


def _plain(quoted: str) -> str:
    try:
        given = json.loads(quoted)
    except (ValueError, RecursionError):
        return BLOCK.sub(r"\2", quoted)
    return "\n".join(_texts(given)) or quoted


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            for name, one in value.items():
                if name not in _NO_TEXT:
                    yield from _texts(one)
