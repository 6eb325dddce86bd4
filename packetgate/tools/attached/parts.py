"""The parts of a user's message: text, pictures and files, in the forms that chat clients send them."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from packetgate.state.errors import RequestError
from packetgate.state.printing import byte_size, shorten
from packetgate.state.sections import Attachment
from packetgate.tools.attached.pictures import MAX_BYTES, picture_type, problem_of
from packetgate.tools.text.result_store import ResultStore, session_results

MAX_PICTURES = 4
MAX_FILES = 8
"""Of one request, pictures included."""
MAX_TEXT_BYTES = 200_000
SEE_ATTACHED = "See what is attached."
"""The request of somebody who attached something and said nothing."""
NAME_CHARS = 80

Part = dict[str, Any]
"""A part of a message, as LangChain has it."""


def part_of(name: str, data: bytes) -> Part:
    """Return a file as a part of a message.

    Raises:
        RequestError: it is neither text nor a picture, or too large.
    """
    problem = problem_with(data)
    if problem:
        raise RequestError(f"{plain_name(name)} cannot be attached: {problem}")
    kind = picture_type(data)
    if not kind:
        return {"type": "text-plain", "text": data.decode("utf-8-sig"), "title": name, "mime_type": "text/plain"}
    return {"type": "image", "base64": base64.b64encode(data).decode(), "mime_type": kind, "extras": {"name": name}}


def problem_with(data: bytes) -> str:
    """Return why this cannot be attached; empty where it can."""
    if not data:
        return "it is empty"
    kind = picture_type(data)
    if kind:
        return problem_of(kind, data)
    try:
        is_text = "\0" not in data.decode("utf-8-sig")
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        return "it is neither text in UTF-8 nor a picture (PNG, JPEG, GIF, WebP)"
    if len(data) > MAX_TEXT_BYTES:
        return f"it has {len(data):,} bytes, {MAX_TEXT_BYTES:,} are the most"
    return ""


def plain_name(name: str) -> str:
    """Return a name that somebody else chose, on one short line."""
    return "".join(char if char.isprintable() else "?" for char in name)[:NAME_CHARS]


def take_files(
    messages: Sequence[BaseMessage], kept: ResultStore | None, session: str
) -> tuple[list[BaseMessage], tuple[Attachment, ...]]:
    """Return messages in text alone, and what came with the last one: pictures are kept for the session. Blocking.

    In earlier messages a mark stands for what is no text.

    Raises:
        RequestError: a part of the last message cannot be used.
    """
    texts: list[BaseMessage] = [_in_text(one) for one in messages]
    if not messages or not isinstance(messages[-1], HumanMessage):
        return texts, ()
    words, files = _read(messages[-1])
    if files:
        texts[-1] = _saying(messages[-1], words.strip() or SEE_ATTACHED)
    found = [_attachment(name, data, kept, session) for name, data in files]
    return texts, tuple(found)


def check_files(messages: Sequence[BaseMessage]) -> None:
    """Make sure that what comes with the last message can be used, wherever it will be kept. Blocking.

    Raises:
        RequestError: it cannot.
    """
    if messages and isinstance(messages[-1], HumanMessage):
        _read(messages[-1])


def _in_text(message: BaseMessage) -> BaseMessage:
    if isinstance(message.content, str) or not isinstance(message, HumanMessage):
        return message
    parts = [part.get("text") or f"[{part.get('type')}]" for part in message.content_blocks]
    return _saying(message, "\n".join(map(str, parts)))


def _saying(message: HumanMessage, text: str) -> HumanMessage:
    """Return a message with other words; who heard it stays with it."""
    return HumanMessage(text, id=message.id, additional_kwargs=message.additional_kwargs)


def _read(message: HumanMessage) -> tuple[str, list[tuple[str, bytes]]]:
    """Return a message's words, and what else it holds, by name.

    Raises:
        RequestError: it cannot be used.
    """
    words: list[str] = []
    files: list[tuple[str, bytes]] = []
    blocks: Iterable[Any] = [] if isinstance(message.content, str) else message.content_blocks
    for block in blocks:
        part: Part = block.get("value", block) if block.get("type") == "non_standard" else block
        match part:
            case {"type": "text" | "input_text", "text": str(text)}:
                words.append(text)
            case {"type": "text-plain", "text": str(text)}:
                files.append((_name(part, len(files)), text.encode(errors="replace")))
            case _:
                files.append((_name(part, len(files)), _bytes(part)))
    pictures = [name for name, data in files if picture_type(data)]
    if len(files) > MAX_FILES or len(pictures) > MAX_PICTURES:
        raise RequestError(
            f"{len(files)} files are attached, {len(pictures)} of them pictures: "
            f"{MAX_FILES} are the most, and {MAX_PICTURES} pictures"
        )
    for name, data in files:
        if problem := problem_with(data):
            raise RequestError(f"{name} cannot be attached: {problem}")
    return "\n".join(words), files


def _bytes(part: Part) -> bytes:
    kind = str(part.get("type"))
    if kind in {"input_image", "input_file"}:  # as another protocol of OpenAI's has them
        url = part.get("image_url") or part.get("file_data")
        part = {"url": url} if isinstance(url, str) else part
    encoded, url = part.get("base64") or part.get("data"), part.get("url")
    if isinstance(url, str) and url.startswith("data:"):
        head, _, encoded = url.partition(",")
        encoded = encoded if head.endswith(";base64") else None
    elif url:
        raise RequestError(
            f"{shorten(str(url), 80)} is not fetched: send the picture or file itself, in base64 as a data: URL"
        )
    if not isinstance(encoded, str):
        raise RequestError(
            f"the message holds a part of type {kind!r} that is not read here: "
            "send text, or a picture or text file in base64 as a data: URL"
        )
    if len(encoded) > 2 * MAX_BYTES:
        raise RequestError(f"what is attached is larger than {byte_size(MAX_BYTES)}")
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"a part of type {kind!r} is not in base64: {error}") from error


def _name(part: Part, number: int) -> str:
    extras = _table(part.get("extras"))
    places = (part, extras, _table(part.get("metadata")), _table(extras.get("metadata")))
    known = (place.get(key) for place in places for key in _NAMES)
    given = next((one for one in known if isinstance(one, str) and one.strip()), "")
    return plain_name(given) or f"attached-{number + 1}"


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_NAMES = ("name", "filename", "title")


def _attachment(name: str, data: bytes, kept: ResultStore | None, session: str) -> Attachment:
    known = {"name": name, "size": len(data), "sha256": sha256(data).hexdigest()}
    kind = picture_type(data)
    if not kind:
        return Attachment(**known, text=data.decode("utf-8-sig"))
    with session_results(session):
        handle = kept.keep(data) if kept else ""
    if not handle:
        raise RequestError(
            f"{name} cannot be kept here, as pictures must be: send it on a thread, or check the folder of sessions"
        )
    return Attachment(**known, mime_type=kind, handle=handle)
