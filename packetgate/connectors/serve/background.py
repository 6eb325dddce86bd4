"""Which requests are no message of a user: a client's own prompts for titles, tags, suggestions and completions.

Such a prompt quotes a conversation, or comes after one, and says what to write about it and how short. It has no new
words of the user. It is recognised by that shape: `TASK`, `ABOUT` and `FORM` are the only words that are searched for.
Where the prompt itself names a file, an address or an order to do something, it is a user's message. The model answers
it, with no tool and no question; without a model the answer is taken from the quote.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.connectors.serve import background_words as marks
from packetgate.connectors.serve.protocol import ModelRequest, WireMessage
from packetgate.models.completion import complete
from packetgate.models.markup.links import inert
from packetgate.models.markup.stripping import strip_markup
from packetgate.models.model import Model
from packetgate.state.base import TokenUsage
from packetgate.state.errors import PacketgateError
from packetgate.state.printing import compact_json, shorten
from packetgate.tools.text.words import query_terms

HEAD_CHARS, HEAD_SENTENCES = 600, 2
"""The part of a system prompt that must state its only task, such as writing titles."""
ORDER_CHARS = 2_000
"""Longest instruction after a conversation that is sent as messages."""


@dataclass(frozen=True)
class Background:
    """A client's own prompt."""

    instruction: str
    """The instruction, without the quote."""
    quoted: str
    """The quoted conversation."""


def background_prompt(asked: ModelRequest) -> Background | None:
    """Return the background prompt in a request; None for a user's message."""
    messages = [one for one in asked.said if one.role != "tool"]
    system = "\n".join(one.words for one in messages if one.role in {"system", "developer"})
    spoken = [one for one in messages if one.role in {"user", "assistant"}]
    after = _last_turn(spoken)
    words = "\n".join(one.words for one in after)
    quote = _quoted(words)
    outside, quoted = quote or (words, words)
    if _says_so(asked.metadata) or _says_so(asked.client_metadata):
        return Background(f"{system}\n{outside}", quoted)
    if messages and messages[-1].role in {"system", "developer"} and len(spoken) > 1:
        last = messages[-1].words
        return Background(last, _as_text(spoken)) if marks.TASK.search(last) else None
    if marks.FILL_IN.match(words) or (
        marks.HOLE.search(words) and (marks.OPEN_TAG.search(words) or marks.TASK.search(f"{system}\n{outside}"))
    ):
        return Background(f"{system}\n{outside}", "")
    if len(spoken) == 1 and not asked.offers_tools and (form := marks.CALL_FORM.search(system)):
        return Background(f"{{{form[0]}", words)
    about = f"{system}\n{outside}"
    is_talk = (
        bool(marks.ABOUT.search(about) and marks.STRICT.search(about) and _is_conversation(words))
        and not asked.offers_tools
    )
    if quote and (_is_task(outside) or ((marks.JSON.search(system) or is_talk) and not _is_order(outside))):
        return Background(about, quoted)
    if asked.offers_tools:
        return None
    if len(spoken) == 1 and (template := _template(words)):
        return template
    if len(spoken) == 1:
        for instruction, rest in _parts(words):
            if (
                rest.strip()
                and marks.ABOUT.search(instruction)
                and marks.STRICT_OR_SHORT.search(instruction)
                and _is_task(instruction)
            ):
                return Background(f"{system}\n{instruction}", rest)
    if _is_for_tasks(system, quotes_all=quote is not None and not outside.strip()):
        return Background(system, quoted if quote else words if len(after) == len(spoken) else _as_text(spoken))
    is_after_conversation = len(spoken) > len(after) and len(words) <= ORDER_CHARS
    has_task = marks.TASK.search(words) or marks.JSON.search(words)
    if is_after_conversation and marks.THIS.search(words) and has_task and _is_formal(words) and not _is_order(words):
        return Background(words, _as_text(spoken[: -len(after)]))
    return None


def _is_for_tasks(system: str, *, quotes_all: bool) -> bool:
    sentences = [one for one in marks.SENTENCE_END.split(_without_blocks(system)[:HEAD_CHARS]) if one.strip()][
        :HEAD_SENTENCES
    ]
    if marks.ELSEWHERE.search(" ".join(sentences)):
        return False
    wanted = [*sentences, " ".join(sentences)] if marks.JSON_WORD.search(system) else sentences
    is_task = any(marks.TASK.search(one) and marks.ABOUT.search(one) for one in wanted)
    return (is_task and (quotes_all or marks.FORM.search(system) is not None)) or marks.ONLY_THING.search(
        system
    ) is not None


def _is_formal(words: str) -> bool:
    words = words.strip()
    return bool(marks.STRICT.search(words) or marks.SENTENCE_END.search(words) or words.endswith(":"))


def _template(words: str) -> Background | None:
    if not marks.OPEN_END.search(words) or not (label := marks.SECTION.search(words)):
        return None
    instruction = marks.FIELD.sub("", marks.QUOTATION.sub("", words[: label.start()]))
    is_prompt = marks.TASK.search(instruction) and not _is_order(instruction)
    return Background(words, words[label.start() :]) if is_prompt else None


def _parts(words: str) -> Iterator[tuple[str, str]]:
    for divider in ("\n\n", ":"):
        first, _, rest = words.partition(divider)
        yield first, rest
    paragraphs = words.split("\n\n")
    for at, one in enumerate(paragraphs):
        if at and marks.ASKED_BEFORE.search(one):
            yield one, "\n".join(paragraphs[:at])


def _last_turn(spoken: Sequence[WireMessage]) -> Sequence[WireMessage]:
    answered = [at for at, one in enumerate(spoken) if one.role == "assistant"]
    return spoken[answered[-1] + 1 :] if answered else spoken


def _says_so(metadata: Mapping[str, Any] | None) -> bool:
    for name, value in (metadata or {}).items():
        if name in {"task", "request_kind"} and isinstance(value, str) and value not in {"", "turn", "chat", "user"}:
            return True
        if isinstance(value, str) and value.startswith("{") and "request_kind" in value:
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                continue
            if isinstance(inner, dict) and _says_so(inner):
                return True
    return False


def _is_task(outside: str) -> bool:
    has_task = marks.TASK.search(marks.EXAMPLE.sub(" ", outside)) is not None and marks.FORM.search(outside) is not None
    return (has_task or marks.JSON.search(outside) is not None) and not _is_order(outside)


def _is_order(words: str) -> bool:
    plain = marks.EXAMPLE.sub(" ", words)
    return marks.PLACE.search(plain) is not None or marks.ORDER.search(plain) is not None


def _quoted(words: str) -> tuple[str, str] | None:
    if marks.OPEN_LABEL.search(words):
        words = marks.FIELD.sub("", words)
    sides = {
        "user" if marks.USER_TAG.fullmatch(found[1]) else "other" if marks.OTHER_TAG.fullmatch(found[1]) else ""
        for found in marks.BLOCK.finditer(words)
    }
    if {"user", "other"} <= sides:
        return _without_blocks(words), words
    blocks = [
        found
        for found in marks.BLOCK.finditer(words)
        if marks.HISTORY_TAG.search(found[1]) or _is_conversation(found[2])
    ]
    if blocks:
        return _without_blocks(words), "\n".join(found[2].strip() for found in blocks)
    for found in marks.FENCE.finditer(words):
        around = f"{words[: found.start()]}\n{words[found.end() :]}"
        if _is_conversation(found[2]) or marks.ASKED_BEFORE.search(around):
            return around, found[2].strip()
    if words.lstrip().startswith(("[", "{")) and marks.JSON_ROLE.search(words):
        return "", words
    if _is_conversation(words):
        return _around(words)
    last = marks.LAST_FENCE.search(words) or marks.QUOTED.search(words)
    return (marks.QUOTATION.sub("", words[: last.start()]), last[1]) if last else None


def _is_conversation(text: str) -> bool:
    roles = {found[1].lower() for found in marks.JSON_ROLE.finditer(text)}
    if roles:
        return True
    sides = {"user" if found["user"] else "other" for found in marks.LABEL.finditer(text)}
    return len(sides) == 2


def _around(words: str) -> tuple[str, str]:
    roles = [*marks.LABEL.finditer(words)] or [*marks.JSON_ROLE.finditer(words)]
    start, last = roles[0].start(), roles[-1].end()
    rest = words[last:]
    label, tail = marks.OPEN_LABEL.search(rest), rest.rfind("\n\n")
    after = label[0] if label else rest[tail:] if tail >= 0 else ""
    if not label and not marks.TASK.search(after) and not marks.ORDER.search(after):
        after = ""
    return f"{words[:start].rstrip('[{ ')}\n{after}", words[start : len(words) - len(after)]


def _without_blocks(text: str) -> str:
    return marks.BLOCK.sub(" ", text)


def _as_text(messages: Sequence[WireMessage]) -> str:
    return "\n".join(f"{one.role}: {one.words}" for one in messages)


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
    """Return the model's answer and its token usage; without a model, or if it fails, extract an answer."""
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
    """Return an answer made from the quote, in the requested form."""
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
    lines = [marks.LABEL.sub("", line).strip(" \"'*`") for line in _plain(quoted).splitlines()]
    first = next((line for line in lines if re.search(r"\w", line) and not line.endswith(":")), "")
    return shorten(" ".join(first.split()[:TITLE_WORDS]), TITLE_CHARS).rstrip(" .,:;?!") or "Chat"


def _tags(quoted: str) -> list[str]:
    counted = Counter(_words(_plain(quoted)))
    return [word for word, _ in counted.most_common(TAGS)] or ["General"]


def _words(text: str) -> list[str]:
    return [word for line in text.splitlines() for word in query_terms(marks.LABEL.sub("", line)) if len(word) > 2]


def _plain(quoted: str) -> str:
    try:
        given = json.loads(quoted)
    except (ValueError, RecursionError):
        return marks.BLOCK.sub(r"\2", quoted)
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
