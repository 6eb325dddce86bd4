"""Attachments of users in the forms that chat clients send."""

import base64
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from support.pictures import data_url, png

from packetgate.state.errors import RequestError
from packetgate.state.sections import Attachment
from packetgate.tools.attached.media import MAX_PICTURE_BYTES, picture_type, stored_picture
from packetgate.tools.attached.parts import extract_files, message_part
from packetgate.tools.text.result_store import ResultStore, session_results

CAT = png(shade=7)
ENCODED = base64.b64encode(CAT).decode()
TEXT = base64.b64encode(b"Ask the cat.").decode()


@dataclass(frozen=True)
class Case:
    part: dict[str, Any]
    name: str = "attached-1"
    text: str = ""


TAKEN = {
    "LangChain": Case({"type": "image", "base64": ENCODED, "mime_type": "image/png"}),
    "LangChain, a file": Case({"type": "file", "base64": TEXT, "mime_type": "text/csv"}, text="Ask the cat."),
    "LangChain, text": Case({"type": "text-plain", "text": "Ask.", "title": "a.md"}, "a.md", "Ask."),
    "OpenAI": Case({"type": "image_url", "image_url": {"url": data_url(CAT), "detail": "low"}}),
    "OpenAI, a file": Case(
        {"type": "file", "file": {"filename": "a.txt", "file_data": f"data:text/plain;base64,{TEXT}"}},
        "a.txt",
        "Ask the cat.",
    ),
    "OpenAI's responses": Case({"type": "input_image", "image_url": data_url(CAT)}),
    "OpenAI's responses, a file": Case(
        {"type": "input_file", "filename": "a.txt", "file_data": f"data:text/plain;base64,{TEXT}"},
        "a.txt",
        "Ask the cat.",
    ),
    "LangChain, before": Case(
        {
            "type": "image",
            "source_type": "base64",
            "mime_type": "image/png",
            "data": ENCODED,
            "metadata": {"name": "b"},
        },
        "b",
    ),
    "agent-chat-ui": Case(
        {"type": "image", "mimeType": "image/jpeg", "data": ENCODED, "metadata": {"name": "c.jpg"}}, "c.jpg"
    ),
    "Anthropic": Case({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}}),
    "a name on two lines": Case(
        {"type": "text-plain", "text": "x", "title": "a\n\x1b[2J" + "b" * 99}, "a??[2J" + "b" * 74, "x"
    ),
}


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_files_in_every_form_are_read(case: Case, tmp_path: Path) -> None:
    kept = ResultStore(tmp_path)
    message = HumanMessage([{"type": "text", "text": "What is it?"}, case.part], id="m")
    (rest,), (one,) = extract_files([message], kept, "s")
    assert (rest.content, rest.id) == ("What is it?", "m")
    assert (one.name, one.text) == (case.name, case.text)
    if case.text:
        assert (one.mime_type, one.handle) == ("text/plain", "")
    else:
        file = kept.file(one.handle, "s")
        assert file is not None
        assert file.read_bytes() == CAT
        assert (one.mime_type, one.size) == ("image/png", len(CAT))  # the content decides, not the declared type


REFUSED = {
    "an address": ({"type": "image_url", "image_url": {"url": "http://evil.test/a.png"}}, "is not fetched: send"),
    "a file's address": ({"type": "image", "url": "file:///etc/passwd"}, "is not fetched: send"),
    "a file of the server's": ({"type": "file", "file": {"file_id": "file-1"}}, "a part of type 'file' cannot"),
    "a sound": ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "cannot be attached: it is"),
    "no base64": ({"type": "image", "base64": "%%%", "mime_type": "image/png"}, "is not in base64"),
    "a text of another type": ({"type": "document", "text": "/write a.txt x"}, "a part of type 'document' cannot"),
    "an unknown part": ({"type": "hologram"}, "a part of type 'hologram' cannot be read"),
    "a picture in words": ({"type": "image_url", "image_url": {"url": "data:image/png,cat"}}, "cannot be read"),
    "too large": ({"type": "image", "base64": "A" * 11_000_000, "mime_type": "image/png"}, "is larger than 5.0 MB"),
    "a large picture": (
        {"type": "image", "base64": base64.b64encode(CAT.ljust(MAX_PICTURE_BYTES + 1)).decode()},
        "it has 5.0 MB, the limit is 5.0 MB",
    ),
    "another kind": ({"type": "file", "base64": base64.b64encode(b"\xff\0").decode()}, "neither text in UTF-8 nor a"),
}


@pytest.mark.parametrize(("part", "why"), REFUSED.values(), ids=REFUSED)
def test_unusable_parts_are_refused(part: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        extract_files([HumanMessage([{"type": "text", "text": "What?"}, part])], ResultStore(tmp_path), "s")
    assert why in str(caught.value)


def test_earlier_files_become_marks(tmp_path: Path) -> None:
    picture = {"type": "image", "url": "http://evil.test/a.png"}
    earlier = HumanMessage([{"type": "text", "text": "Look"}, picture, message_part("a.txt", b"Write to Eve.")])
    messages, files = extract_files([earlier, AIMessage("I see."), HumanMessage("And?")], ResultStore(tmp_path), "s")
    assert [one.content for one in messages] == ["Look\n[image]\n[text-plain]", "I see.", "And?"]
    assert files == ()


def test_without_a_store_pictures_are_refused_and_texts_are_not() -> None:
    picture, text = message_part("a.png", CAT), message_part("a.txt", b"Ask.")
    assert extract_files([HumanMessage([text])], None, "s")[1][0].text == "Ask."
    with pytest.raises(RequestError, match=r"a\.png cannot be stored"):
        extract_files([HumanMessage([picture])], None, "s")


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (CAT, "image/png"),
        (b"GIF89a", "image/gif"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"RIFF1234WEBP", "image/webp"),
        (b"RIFF1234WAVE", ""),
        (b"%PDF-", ""),
    ],
)
def test_the_first_bytes_decide_whether_a_file_is_a_picture(start: bytes, kind: str) -> None:
    assert picture_type(start) == kind


def test_only_unchanged_pictures_of_the_session_are_returned(tmp_path: Path) -> None:
    kept, data = ResultStore(tmp_path), png()
    with session_results("one"):
        handle = kept.keep(data)
    known = {"mime_type": "image/png", "size": len(data), "sha256": sha256(data).hexdigest()}
    one = Attachment(name="a.png", handle=handle, **known)
    assert stored_picture(one, kept, "one") == data
    assert stored_picture(one, kept, "another") is None
    assert stored_picture(one.model_copy(update={"mime_type": "image/gif"}), kept, "one") is None
    (file,) = [file for file in tmp_path.rglob("*") if file.is_file()]
    file.write_bytes(png(shade=9))
    assert stored_picture(one, kept, "one") is None
    file.unlink()
    assert stored_picture(one, kept, "one") is None
