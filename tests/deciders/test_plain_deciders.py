"""The deciders without a model and without a plug-in: only typed commands call tools, and the answer says this."""

from typing import Any

import pytest
from support.packets import CONTEXT, FILES, Shelf, asking, done, packet, with_output

from packetgate.deciders.fallback import NO_ANSWER, plain_deciders
from packetgate.state.sections import Attachment, Content

PLAIN = plain_deciders()
ATTACHED = asking("What does it say?").with_update({"content": Content(attachments=(Attachment(name="a.txt"),))})


async def test_words_need_no_tool():
    assert not (await PLAIN.intent(asking("read a.txt"), Shelf(), CONTEXT)).needs_tool


async def test_no_call_is_approved():
    judged = await PLAIN.reviewer(packet("read a.txt", done("files.read_file", path="a.txt")), FILES, CONTEXT)
    assert [(one.approved, one.confidence) for one in judged.reviews] == [(False, 0.0)]


@pytest.mark.parametrize(
    ("beside_model", "given", "says", "says_not"),
    [
        (False, asking("What does a.txt say?"), "`create_router(model=...)` takes one", NO_ANSWER),
        (False, asking("Hello"), "I route requests to tools", "none is configured"),
        (False, asking("What can you do?"), "\nType a call", "plain words"),
        (False, ATTACHED, "Attachments were not read, because no language model is configured: a.txt.", NO_ANSWER),
        (True, asking("What can you do?"), "Say what you want in plain words", "Type a call"),
        (True, asking("What does a.txt say?"), NO_ANSWER, "none is configured"),
        (
            False,
            packet("read a.txt", with_output(done("files.read_file", path="a.txt"), "apples")),
            "apples",
            "none is configured",
        ),
    ],
)
async def test_the_answer_is_the_result_or_what_can_be_typed(beside_model: bool, given: Any, says: str, says_not: str):
    text = (await plain_deciders(beside_model=beside_model).responder(given, FILES, CONTEXT)).text
    assert says in text
    assert says_not not in text
