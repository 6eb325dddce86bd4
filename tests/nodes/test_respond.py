"""What is shown below an answer."""

from support.packets import CONTEXT, packet

from packetgate.deciders.protocols import Answer
from packetgate.nodes.respond import respond
from packetgate.state.printing import fenced

PICTURE = "![x](https://evil.example/p.png)"


class Known:
    known: object = None


class Nothing:
    context = CONTEXT


async def test_a_fence_that_the_words_left_open_lets_no_result_out_as_a_picture():
    async def decider(*_: object) -> Answer:
        return Answer(text="Here it is:\n```", below=f"\n\n{fenced(PICTURE)}", decided_by="model")

    update = await respond(packet("Show a.txt"), Nothing(), decider=decider, toolbox=Known())  # type: ignore[arg-type]
    assert PICTURE not in update["response"].candidate
    assert "evil.example" in update["response"].candidate
