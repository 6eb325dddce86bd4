"""The deciders without a model and without a plug-in: simple reads, and an answer that claims nothing else."""

from typing import Any

import pytest
from support.packets import CONTEXT, FILES, Shelf, asking, done, packet, tool, with_output

from packetgate.deciders.fallback import (
    NO_ANSWER,
    detect_plainly,
    plain_deciders,
    requested_call,
    respond_plainly,
    review_plainly,
    select_plainly,
)
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue

MANY = Catalogue([*FILES.values(), tool("mail.read_file", "path", path="string")])


@pytest.mark.parametrize(
    ("request_", "call"),
    [
        ("/read_file a.txt", None),
        ("read a.txt", ("files.read_file", {"path": "a.txt"})),
        ("Please show me the file `src/a.py`.", ("files.read_file", {"path": "src/a.py"})),
        ("Print the contents of notes.txt, please", ("files.read_file", {"path": "notes.txt"})),
        ("list src/", ("files.read_file", {"path": "src/"})),
        ("Read a.txt and delete it", None),
        ("Read a.txt unless it is long", None),
        ("Don't read a.txt", None),
        ("Delete a.txt", None),
        ("What does a.txt say?", None),
    ],
)
def test_only_a_plain_request_becomes_a_call(request_: str, call: tuple[str, dict[str, Any]] | None):
    found = requested_call(request_, FILES)
    assert (found and (found.tool_name, found.params)) == call


def test_a_plain_read_needs_one_reader():
    assert requested_call("read a.txt", MANY) is None
    assert requested_call("read a.txt", Catalogue()) is None


@pytest.mark.parametrize(
    ("given", "needs_tool", "access"),
    [
        (asking("read a.txt"), True, Access.READ),
        (asking("Hello"), False, Access.READ),
        (asking("What does a.txt say?"), False, Access.READ),
        (packet("read a.txt", with_output(done("files.read_file", path="a.txt"), "apples")), False, Access.READ),
    ],
)
async def test_a_tool_is_needed_until_the_call_is_made(given: Any, needs_tool: bool, access: Access):
    decision = await detect_plainly(given, Shelf(), CONTEXT)
    assert (decision.needs_tool, decision.access, decision.decided_by) == (needs_tool, access, "reflex")


async def test_the_selection_is_the_requested_read():
    chosen = await select_plainly(asking("read a.txt"), FILES, CONTEXT)
    assert [(call.tool_name, call.params) for call in chosen.calls] == [("files.read_file", {"path": "a.txt"})]
    assert chosen.complete
    assert (await select_plainly(asking("Tidy up"), FILES, CONTEXT)).action == "none"


async def test_only_the_requested_call_is_approved():
    typed, other = done("files.read_file", path="a.txt"), done("files.delete_file", path="a.txt")
    foreign = done("files.read_file", path="b.txt").changed(provenance={"path": Origin(kind=OriginKind.TEXT)})
    judged = await review_plainly(packet("read a.txt", typed, other, foreign), FILES, CONTEXT)
    assert [one.approved for one in judged.reviews] == [True, False, False]
    assert {one.confidence for one in judged.reviews if not one.approved} == {0.0}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (asking("What does a.txt say?"), "`create_router(model=...)` takes one"),
        (asking("Hello"), "I route requests to tools"),
        (packet("read a.txt", with_output(done("files.read_file", path="a.txt"), "apples")), "apples"),
    ],
)
async def test_the_answer_is_the_result_or_how_to_get_a_model(given: Any, says: str):
    assert says in (await respond_plainly(given, FILES, CONTEXT)).text


async def test_beside_a_model_the_answer_does_not_claim_that_none_is_configured():
    given = asking("What does a.txt say?")
    text = (await plain_deciders(beside_model=True).responder(given, FILES, CONTEXT)).text
    assert NO_ANSWER in text
    assert "none is configured" not in text
