"""Which requests are no message of a user: a client's own prompts for titles, tags, suggestions and completions.

Such a prompt quotes a conversation, or comes after one, and says what to write about it and how short. It holds no new
words of the user. It is recognised by that shape, in whatever words: `TASK`, `ABOUT` and `FORM` are all the words that
are looked for. Where the prompt itself names a file, an address or an order to do something, it is a user's message.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packetgate.connectors.serve.background_words import (
    ABOUT,
    ASKED_BEFORE,
    BLOCK,
    CALL_FORM,
    ELSEWHERE,
    EXAMPLE,
    FENCE,
    FIELD,
    FILL_IN,
    FORM,
    HISTORY_TAG,
    HOLE,
    JSON,
    JSON_ROLE,
    JSON_WORD,
    LABEL,
    LAST_FENCE,
    ONLY_THING,
    OPEN_END,
    OPEN_LABEL,
    OPEN_TAG,
    ORDER,
    OTHER_TAG,
    PLACE,
    QUOTATION,
    QUOTED,
    SECTION,
    SENTENCE_END,
    STRICT,
    STRICT_OR_SHORT,
    TASK,
    THIS,
    USER_TAG,
)
from packetgate.connectors.serve.protocol import ModelRequest, WireMessage

HEAD_CHARS, HEAD_SENTENCES = 600, 2
"""Of a system prompt, the part that must already say that writing titles or the like is all that it is for."""
ORDER_CHARS = 2_000
"""The longest instruction about a conversation that is sent as messages, rather than quoted."""


@dataclass(frozen=True)
class Background:
    """A client's own prompt."""

    instruction: str
    """What the client asks for, without what it quotes."""
    quoted: str
    """What it asks it about."""


def background_prompt(asked: ModelRequest) -> Background | None:
    """Return a request as a client's own prompt; None for a message of a user."""
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
        return Background(last, _as_text(spoken)) if TASK.search(last) else None
    if FILL_IN.match(words) or (HOLE.search(words) and (OPEN_TAG.search(words) or TASK.search(f"{system}\n{outside}"))):
        return Background(f"{system}\n{outside}", "")
    if len(spoken) == 1 and not asked.offers_tools and (form := CALL_FORM.search(system)):
        return Background(f"{{{form[0]}", words)
    about = f"{system}\n{outside}"
    is_talk = bool(ABOUT.search(about) and STRICT.search(about) and _is_conversation(words)) and not asked.offers_tools
    if quote and (_is_task(outside) or ((JSON.search(system) or is_talk) and not _is_order(outside))):
        return Background(about, quoted)
    if asked.offers_tools:
        return None
    if len(spoken) == 1 and (template := _template(words)):
        return template
    if len(spoken) == 1:
        for instruction, rest in _parts(words):
            if (
                rest.strip()
                and ABOUT.search(instruction)
                and STRICT_OR_SHORT.search(instruction)
                and _is_task(instruction)
            ):
                return Background(f"{system}\n{instruction}", rest)
    if _is_for_tasks(system, quotes_all=quote is not None and not outside.strip()):
        return Background(system, quoted if quote else words if len(after) == len(spoken) else _as_text(spoken))
    is_after_conversation = len(spoken) > len(after) and len(words) <= ORDER_CHARS
    has_task = TASK.search(words) or JSON.search(words)
    if is_after_conversation and THIS.search(words) and has_task and _is_formal(words) and not _is_order(words):
        return Background(words, _as_text(spoken[: -len(after)]))
    return None


def _is_for_tasks(system: str, *, quotes_all: bool) -> bool:
    sentences = [one for one in SENTENCE_END.split(_without_blocks(system)[:HEAD_CHARS]) if one.strip()][
        :HEAD_SENTENCES
    ]
    if ELSEWHERE.search(" ".join(sentences)):
        return False
    wanted = [*sentences, " ".join(sentences)] if JSON_WORD.search(system) else sentences
    is_task = any(TASK.search(one) and ABOUT.search(one) for one in wanted)
    return (is_task and (quotes_all or FORM.search(system) is not None)) or ONLY_THING.search(system) is not None


def _is_formal(words: str) -> bool:
    words = words.strip()
    return bool(STRICT.search(words) or SENTENCE_END.search(words) or words.endswith(":"))


def _template(words: str) -> Background | None:
    if not OPEN_END.search(words) or not (label := SECTION.search(words)):
        return None
    instruction = FIELD.sub("", QUOTATION.sub("", words[: label.start()]))
    is_prompt = TASK.search(instruction) and not _is_order(instruction)
    return Background(words, words[label.start() :]) if is_prompt else None


def _parts(words: str) -> Iterator[tuple[str, str]]:
    for divider in ("\n\n", ":"):
        first, _, rest = words.partition(divider)
        yield first, rest
    paragraphs = words.split("\n\n")
    for at, one in enumerate(paragraphs):
        if at and ASKED_BEFORE.search(one):
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
    has_task = TASK.search(EXAMPLE.sub(" ", outside)) is not None and FORM.search(outside) is not None
    return (has_task or JSON.search(outside) is not None) and not _is_order(outside)


def _is_order(words: str) -> bool:
    plain = EXAMPLE.sub(" ", words)
    return PLACE.search(plain) is not None or ORDER.search(plain) is not None


def _quoted(words: str) -> tuple[str, str] | None:
    if OPEN_LABEL.search(words):
        words = FIELD.sub("", words)
    sides = {
        "user" if USER_TAG.fullmatch(found[1]) else "other" if OTHER_TAG.fullmatch(found[1]) else ""
        for found in BLOCK.finditer(words)
    }
    if {"user", "other"} <= sides:
        return _without_blocks(words), words
    blocks = [found for found in BLOCK.finditer(words) if HISTORY_TAG.search(found[1]) or _is_conversation(found[2])]
    if blocks:
        return _without_blocks(words), "\n".join(found[2].strip() for found in blocks)
    for found in FENCE.finditer(words):
        around = f"{words[: found.start()]}\n{words[found.end() :]}"
        if _is_conversation(found[2]) or ASKED_BEFORE.search(around):
            return around, found[2].strip()
    if words.lstrip().startswith(("[", "{")) and JSON_ROLE.search(words):
        return "", words
    if _is_conversation(words):
        return _around(words)
    last = LAST_FENCE.search(words) or QUOTED.search(words)
    return (QUOTATION.sub("", words[: last.start()]), last[1]) if last else None


def _is_conversation(text: str) -> bool:
    roles = {found[1].lower() for found in JSON_ROLE.finditer(text)}
    if roles:
        return True
    sides = {"user" if found["user"] else "other" for found in LABEL.finditer(text)}
    return len(sides) == 2


def _around(words: str) -> tuple[str, str]:
    marks = [*LABEL.finditer(words)] or [*JSON_ROLE.finditer(words)]
    start, last = marks[0].start(), marks[-1].end()
    rest = words[last:]
    label, tail = OPEN_LABEL.search(rest), rest.rfind("\n\n")
    after = label[0] if label else rest[tail:] if tail >= 0 else ""
    if not label and not TASK.search(after) and not ORDER.search(after):
        after = ""
    return f"{words[:start].rstrip('[{ ')}\n{after}", words[start : len(words) - len(after)]


def _without_blocks(text: str) -> str:
    return BLOCK.sub(" ", text)


def _as_text(messages: Sequence[WireMessage]) -> str:
    return "\n".join(f"{one.role}: {one.words}" for one in messages)
