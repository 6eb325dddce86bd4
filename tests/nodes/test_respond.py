"""Results below an answer."""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import HumanMessage
from support.packets import CONTEXT, packet

from packetgate.deciders.language.prompting import conversation
from packetgate.deciders.protocols import Answer
from packetgate.models.model import Model
from packetgate.nodes.respond import respond
from packetgate.state.printing import fenced

PICTURE = "![x](https://evil.example/p.png)"


class FakeToolbox:
    last_catalogue: object = None


class FakeRuntime:
    context = CONTEXT


async def test_an_unclosed_fence_does_not_render_a_result_as_a_picture():
    async def decider(*_: object) -> Answer:
        return Answer(text="Here it is:\n```", appendix=f"\n\n{fenced(PICTURE)}", decided_by="model")

    update = await respond(packet("Show a.txt"), FakeRuntime(), decider=decider, toolbox=FakeToolbox())  # type: ignore[arg-type]
    assert PICTURE not in update["response"].candidate
    assert "evil.example" in update["response"].candidate


async def test_the_models_history_has_its_own_text_without_results():
    async def decider(*_: object) -> Answer:
        return Answer(text="Here it is.", appendix=f"\n\n{fenced('apples')}", decided_by="model")

    update = await respond(packet("Show a.txt"), FakeRuntime(), decider=decider, toolbox=FakeToolbox())  # type: ignore[arg-type]
    assert "apples" in update["messages"][-1].text
    history = [HumanMessage("Show a.txt"), *update["messages"], HumanMessage("And b.txt?")]
    later = packet("And b.txt?").model_copy(update={"messages": history})
    sent = await conversation(Model(GenericFakeChatModel(messages=iter(()))), later, ["Be brief."], "And b.txt?", 100)
    *earlier, last = [message.text for message in sent]
    assert earlier == ["Be brief.", "Show a.txt", "Here it is."]
    assert last.startswith("And b.txt?\n\n(It is ")
