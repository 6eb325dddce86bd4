"""Results that appear below an answer."""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from support.packets import CONTEXT, FILES_TOOLBOX, packet

from packetgate.deciders.language.prompting import conversation
from packetgate.deciders.protocols import Answer
from packetgate.models.model import Model
from packetgate.nodes.respond import respond
from packetgate.state.packet import PacketUpdate
from packetgate.state.printing import fenced

PICTURE = "![x](https://evil.example/p.png)"


async def responded(text: str, appendix: str) -> PacketUpdate:
    async def decider(*_: object) -> Answer:
        return Answer(text=text, appendix=f"\n\n{fenced(appendix)}", decided_by="model")

    return await respond(packet("Show a.txt"), Runtime(context=CONTEXT), decider=decider, toolbox=FILES_TOOLBOX)


async def test_an_unclosed_fence_does_not_render_a_result_as_a_picture():
    update = await responded("Here it is:\n```", PICTURE)
    assert PICTURE not in update["response"].candidate
    assert "evil.example" in update["response"].candidate


async def test_the_models_history_has_its_own_text_without_results():
    update = await responded("Here it is.", "apples")
    assert "apples" in update["messages"][-1].text
    history = [HumanMessage("Show a.txt"), *update["messages"], HumanMessage("And b.txt?")]
    later = packet("And b.txt?").model_copy(update={"messages": history})
    sent = await conversation(Model(GenericFakeChatModel(messages=iter(()))), later, ["Be brief."], "And b.txt?", 100)
    *earlier, last = [message.text for message in sent]
    assert earlier == ["Be brief.", "Show a.txt", "Here it is."]
    assert last.startswith("And b.txt?\n\n(It is ")
