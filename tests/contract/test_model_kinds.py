"""A router accepts each kind of LangChain model that an agent accepts, including models that LangChain wraps."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.model import ScriptedModel, approve
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field
from support.scripted_openai import ScriptedOpenAI, serve_scripted_openai
from support.scripted_replies import as_calls

from packetgate.router import create_router
from packetgate.state.errors import InputError
from packetgate.toolsets.servers.functions import reads


@reads
def list_late_orders() -> str:
    """List the orders that are late."""
    return "A-17 is late"


class Model(ScriptedModel):
    """Makes one call, then answers, and records its options. The first `failures` requests fail."""

    steps: Any = Field(default_factory=lambda: [[("list_late_orders", {})]])
    failures: int = 0
    options: Any = Field(default_factory=list)

    def _generate(self, *given: Any, **options: Any) -> ChatResult:
        self.options.append(options)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the endpoint is down")
        return super()._generate(*given, **options)


class Listener(BaseCallbackHandler):
    def __init__(self) -> None:
        self.tags: list[str] = []

    def on_chat_model_start(self, *given: Any, tags: list[str] | None = None, **more: Any) -> None:
        self.tags += tags or []


MADE: list[tuple[str, Callable[[Model], Any]]] = [
    ("as it is", lambda model: model),
    ("with fallbacks", lambda model: Model(failures=9).with_fallbacks([model])),
    (
        "with fallbacks that have bound options",
        lambda model: Model(failures=9).with_fallbacks([model.bind(stop=["."])]),
    ),
    ("with retries", lambda model: model.model_copy(update={"failures": 1}).with_retry(wait_exponential_jitter=False)),
    ("with bound options", lambda model: model.bind(stop=["."])),
    ("with a config", lambda model: model.with_config(tags=["mine"])),
    (
        "with all of them",
        lambda model: model.bind(stop=["."]).with_retry().with_fallbacks([Model()]).with_config(tags=["mine"]),
    ),
]


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MADE])
@pytest.mark.parametrize("role", ["model", "prime"])
def test_a_model_may_be_wrapped(make: Callable[[Model], Any], role: str, tmp_path: Path):
    model = make(Model())
    given: dict[str, Any] = {"model": model} if role == "model" else {"model": Model(answer="unused"), "prime": model}
    with create_router(**given, tools=[list_late_orders], deciders={"reviewer": approve}, root=tmp_path) as router:
        turn = router.invoke("Which orders are late?")
    assert [call.tool_name for call in turn.calls] == ["functions.list_late_orders"]
    assert turn.answer.startswith("That is all.")
    assert not turn.packet.metrics.errors


def test_settings_of_bind_and_with_config_reach_the_model(tmp_path: Path):
    model, listener = Model(), Listener()
    wrapped = model.bind(temperature=0.01, stop=["."]).with_config(tags=["mine"], callbacks=[listener])
    with create_router(wrapped, [list_late_orders], deciders={"reviewer": approve}, root=tmp_path) as router:
        router.invoke("Which orders are late?")
    assert len(model.options) == 2
    assert {(options["temperature"], options.get("tools") is not None) for options in model.options} == {(0.01, True)}
    assert listener.tags.count("mine") == 2


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with serve_scripted_openai() as server:
        yield server


@pytest.mark.parametrize("named", [True, False])
async def test_the_run_chooses_a_configurable_model(endpoint: ScriptedOpenAI, named: bool, tmp_path: Path):
    endpoint.script(
        as_calls({"action": "call", "calls": [{"tool": "functions.list_late_orders", "params": {}}]}), "A-17 is late."
    )
    name = {"model": "other", "configurable_fields": ["model"]} if named else {}
    model = init_chat_model(**name, model_provider="openai", base_url=endpoint.base_url, api_key="unused")
    router = create_router(model, [list_late_orders], deciders={"reviewer": approve}, root=tmp_path)
    graph = router.graph.copy({"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "one", "model": "scripted"}}
    state = await graph.ainvoke({"messages": [HumanMessage("Which orders are late?")]}, config)
    assert state["messages"][-1].text == "A-17 is late."
    assert {request["model"] for request in endpoint.requests} == {"scripted"}


def test_none_means_no_model(tmp_path: Path):
    with create_router(None, [list_late_orders], root=tmp_path) as router:
        assert "A-17" in router.invoke("/functions.list_late_orders").answer


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Model().bind_tools([list_late_orders]), "its own tools bound"),
        (Model() | StrOutputParser(), "RunnableSequence is not a chat model"),
        (StrOutputParser(), "StrOutputParser is not a chat model"),
        (3, "int is not a chat model"),
    ],
)
def test_anything_but_a_chat_model_is_refused(model: Any, message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        create_router(model, [list_late_orders], root=tmp_path)
