"""The parts of a user's message: text, images and files, in the forms of LangChain and OpenAI."""

import base64
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from packetgate.state.errors import RequestError
from packetgate.state.printing import byte_size, shorten
from packetgate.state.sections import Attachment
from packetgate.tools.attached.media import MAX_PICTURE_BYTES, picture_problem, picture_type
from packetgate.tools.text.result_store import ResultStore, session_results

MAX_PICTURES = 4
_MAX_FILES = 8
"""Maximum files in one request, including images."""
MAX_ATTACHED_TEXT_BYTES = 200_000
REQUEST_WITHOUT_TEXT = "See what is attached."
"""Request text for a message that has files but no text."""
_NAME_CHARS = 80
_NAME_KEYS = ("name", "filename", "title")

Part = dict[str, Any]
"""A message part in LangChain's form."""


def message_part(name: str, data: bytes) -> Part:
    """Return a file as a part of a message.

    Raises:
        RequestError: the file is neither text nor an image, or too large.
    """
    if problem := attachment_problem(data):
        raise RequestError(f"{printable_name(name)} cannot be attached: {problem}")
    kind = picture_type(data)
    if not kind:
        return {"type": "text-plain", "text": data.decode("utf-8-sig"), "title": name, "mime_type": "text/plain"}
    return {"type": "image", "base64": base64.b64encode(data).decode(), "mime_type": kind, "extras": {"name": name}}


def attachment_problem(data: bytes) -> str:
    """Return why a file cannot be attached; empty if it can."""
    if not data:
        return "it is empty"
    if picture_type(data):
        return picture_problem(data)
    try:
        is_text = "\0" not in data.decode("utf-8-sig")
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        return "it is neither text in UTF-8 nor an image (PNG, JPEG, GIF, WebP)"
    too_large = f"it has {len(data):,} bytes, the limit is {MAX_ATTACHED_TEXT_BYTES:,}"
    return too_large if len(data) > MAX_ATTACHED_TEXT_BYTES else ""


def printable_name(name: str) -> str:
    """Return an untrusted name on one short line."""
    return "".join(char if char.isprintable() else "?" for char in name)[:_NAME_CHARS]


def extract_files(
    messages: Sequence[BaseMessage], kept: ResultStore | None, session: str
) -> tuple[list[BaseMessage], tuple[Attachment, ...]]:
    """Return the messages as text, and the files of the last message. Blocking.

    Images are stored for the session. In earlier messages, a marker replaces each file.

    Raises:
        RequestError: a part of the last message cannot be used, or an image cannot be stored.
    """
    words, files = text_and_files(messages)
    texts = [_without_files(message) for message in messages]
    if files:
        texts[-1] = _with_text(messages[-1], words.strip() or REQUEST_WITHOUT_TEXT)
    return texts, tuple(_attachment(name, data, kept, session) for name, data in files)


def holds_words(part: Part) -> bool:
    """Whether a part is the sender's own words; a part of any other type is a file, even if it contains text."""
    return part.get("type") in {"text", "input_text"} and isinstance(part.get("text"), str)


def _without_files(message: BaseMessage) -> BaseMessage:
    if isinstance(message.content, str) or not isinstance(message, HumanMessage):
        return message
    parts = [dict(part) for part in message.content_blocks]
    texts = [str(part["text"]) if holds_words(part) else f"[{part.get('type')}]" for part in parts]
    return _with_text(message, "\n".join(texts))


def _with_text(message: BaseMessage, text: str) -> HumanMessage:
    return HumanMessage(text, id=message.id, additional_kwargs=message.additional_kwargs)


def text_and_files(messages: Sequence[BaseMessage]) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text of the last message, and its files with their names. Blocking.

    Raises:
        RequestError: a file cannot be used.
    """
    words: list[str] = []
    files: list[tuple[str, bytes]] = []
    message = messages[-1] if messages else None
    if not isinstance(message, HumanMessage):
        return "", []
    for block in [] if isinstance(message.content, str) else message.content_blocks:
        part: Part = dict(block["value"] if block["type"] == "non_standard" else block)
        match part:
            case _ if holds_words(part):
                words.append(str(part["text"]))
            case {"type": "text-plain", "text": str(text)}:
                files.append((_file_name(part, len(files)), text.encode(errors="replace")))
            case _:
                files.append((_file_name(part, len(files)), _decode_part(part)))
    pictures = sum(bool(picture_type(data)) for _, data in files)
    if len(files) > _MAX_FILES or pictures > MAX_PICTURES:
        raise RequestError(
            f"{len(files)} files are attached, {pictures} of them images: "
            f"the limit is {_MAX_FILES} files and {MAX_PICTURES} images"
        )
    for name, data in files:
        if problem := attachment_problem(data):
            raise RequestError(f"{name} cannot be attached: {problem}")
    return "\n".join(words), files


def _decode_part(part: Part) -> bytes:
    kind = str(part.get("type"))
    url = part.get("url") or part.get("image_url") or part.get("file_data")
    encoded = part.get("base64") or part.get("data")
    if isinstance(url, str) and url.startswith("data:"):
        head, _, data = url.partition(",")
        encoded = data if head.endswith(";base64") else None
    elif url:
        raise RequestError(f"{shorten(str(url), 80)} is not fetched: send the file itself, in base64 as a data: URL")
    if not isinstance(encoded, str):
        raise RequestError(
            f"a part of type {kind!r} cannot be read: send text, or an image or text file in base64 as a data: URL"
        )
    if len(encoded) > 2 * MAX_PICTURE_BYTES:
        raise RequestError(f"an attached file is larger than {byte_size(MAX_PICTURE_BYTES)}")
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except ValueError as error:
        raise RequestError(f"a part of type {kind!r} is not in base64: {error}") from error


def _file_name(part: Part, number: int) -> str:
    extras = part.get("extras")
    inner = extras.get("metadata") if isinstance(extras, dict) else None
    places = [place for place in (part, extras, part.get("metadata"), inner) if isinstance(place, dict)]
    names = (place.get(key) for place in places for key in _NAME_KEYS)
    return printable_name(
        next((name for name in names if isinstance(name, str) and name.strip()), f"attached-{number + 1}")
    )


def _attachment(name: str, data: bytes, kept: ResultStore | None, session: str) -> Attachment:
    known = {"name": name, "size": len(data), "sha256": sha256(data).hexdigest()}
    kind = picture_type(data)
    if not kind:
        return Attachment(**known, text=data.decode("utf-8-sig"))
    with session_results(session):
        handle = kept.keep(data) if kept else ""
    if not handle:
        raise RequestError(
            f"the image {name} cannot be stored: send it in a session, or check that the data folder is writable"
        )
    return Attachment(**known, mime_type=kind, handle=handle)
