"""Two decision models: your own model reviews calls, and `GateDecisionModel` answers questions."""

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, Noul, NoulAnswer, Question, State

from packetgate.decisions import GateDecisionModel
from packetgate.router import create_router
from packetgate.toolsets.servers.functions import reads


@reads
def late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


class Cautious(BaseDecisionModel):
    """Gives the same answer to every question."""

    model: str = "cautious"

    @property
    def _provider(self) -> str:
        return "mine"

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        answers = {name: NoulAnswer(type="noul", noul=0.8) for name in questions}
        return ClassifierResponse(model=self.model, answers={**answers})


with create_router(tools=[late_orders], prime=Cautious()) as router:
    (call,) = router.invoke("Which orders are late?").calls
    print(call.status, call.review_reasoning)

gate = GateDecisionModel(model="openai:gpt-5-mini")
wet = Noul(instructions="Is it wet outside?")
response = gate.invoke({"state": "It has rained all day.", "questions": {"wet": wet}})
print(f"wet: {response.nouls['wet'].noul:.2f}")
