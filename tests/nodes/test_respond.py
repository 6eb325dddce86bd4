"""What is shown below an answer."""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import HumanMessage
from support.packets import CONTEXT, packet

from packetgate.deciders.language.prompting import conversation
from packetgate.deciders.protocols import Answer
from packetgate.models.model import Model
from packetgate.nodes.respond import respond
from packetgate.state.printing import fenced

PICTURE = "![x](https://evil.example/p.png)"


class Known:
    known: object = None


class Nothing:
    context = CONTEXT


async def test_a_fence_that_the_words_left_open_lets_no_result_out_as_a_picture():
    async def decider(*_: object) -> Answer:
        return Answer(text="Here it is:\n```", appendix=f"\n\n{fenced(PICTURE)}", decided_by="model")

    update = await respond(packet("Show a.txt"), Nothing(), decider=decider, toolbox=Known())  # type: ignore[arg-type]
    assert PICTURE not in update["response"].candidate
    assert "evil.example" in update["response"].candidate


async def test_a_model_is_shown_its_own_earlier_words_and_no_result_below_them():
    async def decider(*_: object) -> Answer:
        return Answer(text="Here it is.", appendix=f"\n\n{fenced('apples')}", decided_by="model")

    update = await respond(packet("Show a.txt"), Nothing(), decider=decider, toolbox=Known())  # type: ignore[arg-type]
    assert "apples" in update["messages"][-1].text
    said = [HumanMessage("Show a.txt"), *update["messages"], HumanMessage("And b.txt?")]
    later = packet("And b.txt?").model_copy(update={"messages": said})
    sent = await conversation(Model(GenericFakeChatModel(messages=iter(()))), later, ["Be brief."], "And b.txt?", 100)
    assert [message.text for message in sent] == ["Be brief.", "Show a.txt", "Here it is.", "And b.txt?"]
