"""The gate's model as a LangChain decision model."""

from typing import Any

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, Question, State
from pydantic import PrivateAttr

from packetgate.deciders.language.decisions import answer_by_probability
from packetgate.graph.event_loops import LoopThread
from packetgate.models.decision_models import state_text
from packetgate.models.pool import ModelPool
from packetgate.state.errors import ModelError


class GateDecisionModel(BaseDecisionModel):
    """Answers a `Noul`, a `Choice` or a `Score` with the probabilities of a model's tokens, without generating text.

    `model` is a name such as `llamacpp:PATH` or `openai:NAME` of a model that returns token probabilities. The
    confidence of a choice or score is 1 minus the normalised entropy of its probabilities.

    Raises:
        ModelError: the name does not name a model.
        RequestError: from `invoke`: images, a `Box`, more than 62 options, or more text than the model can read.
        DecisionError: from `invoke`: the model is unreachable, or returns no probabilities.

    Examples:
        >>> from langchain_core.decisions import Noul
        >>> gate = GateDecisionModel(model="openai:gpt-5-mini")
        >>> wet = Noul(instructions="Is it wet outside?")
        >>> gate.invoke({"state": "It has rained all day.", "questions": {"wet": wet}})  # doctest: +SKIP
    """

    _pool: ModelPool = PrivateAttr()
    _loop: LoopThread = PrivateAttr(default_factory=LoopThread)

    def model_post_init(self, context: Any, /) -> None:
        """Parse the model's name; nothing is loaded yet."""
        self._pool = ModelPool(self.model)
        if self._pool.is_reflex:
            raise ModelError("reflex cannot answer questions: name a model, such as llamacpp:FILE.gguf")

    @property
    def _provider(self) -> str:
        return "packetgate"

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        return self._loop.run(self._aclassify(state, questions))

    async def _aclassify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        model = await self._pool.get("prime")
        if model is None:
            raise ModelError(f"{self.model} cannot be loaded")
        return await answer_by_probability(model, state_text(state), questions)
