"""A decision endpoint in OpenAI's format or System One's, which llama.cpp, Ollama and vLLM also serve."""

import asyncio
from collections.abc import Mapping
from typing import Any

import openai
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, Noul, Question, State
from pydantic import PrivateAttr, SecretStr

from packetgate.models.decision_models import state_text
from packetgate.models.kinds import ModelSetup
from packetgate.models.transport import MAX_RETRIES
from packetgate.state.errors import ModelError


class DecisionEndpoint(BaseDecisionModel):
    """An endpoint that answers typed questions with probabilities; OpenAI's format has only yes-or-no questions."""

    form: str
    """`decisions` (OpenAI's format) or `systemone`; also the last part of the URL."""
    openai_api_base: str
    openai_api_key: SecretStr
    key_variable: str
    request_timeout: float
    _client: openai.AsyncOpenAI = PrivateAttr()

    @classmethod
    def at(cls, setup: ModelSetup) -> "DecisionEndpoint":
        """Return a model at an endpoint, without sending a request.

        Raise ModelError if the endpoint is OpenAI's own, and the key is missing or OpenAI has no such endpoint.
        """
        endpoint, model = setup.place, setup.name
        if setup.prefix == "systemone" and endpoint.is_openai:
            raise ModelError(
                f"systemone:{model}: OpenAI has no System One endpoint: set PACKETGATE_PRIME_BASE_URL to a server "
                "that has this endpoint, such as http://127.0.0.1:11434/v1"
            )
        made = cls(
            model=model,
            form=setup.prefix,
            openai_api_base=endpoint.base_url,
            openai_api_key=endpoint.key_for(model),
            key_variable=endpoint.key_variable,
            request_timeout=endpoint.timeout,
        )
        made._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=made.openai_api_key.get_secret_value(),
            timeout=endpoint.timeout,
            max_retries=MAX_RETRIES,
            # An open connection belongs to one event loop, and the endpoint is used from several.
            default_headers={"Connection": "close"},
        )
        return made

    @property
    def client(self) -> openai.AsyncOpenAI:
        """The client that sends the requests."""
        return self._client

    @property
    def model_name(self) -> str:
        """The model name that requests use."""
        return self.model

    @property
    def _provider(self) -> str:
        return self.form

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        return asyncio.run(self._aclassify(state, questions))

    async def _aclassify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        if self.form == "decisions":
            body = _openai_body(state_text(state), questions)
        else:
            asked = {name: one.model_dump(mode="json", exclude_none=True) for name, one in questions.items()}
            body = {"state": state_text(state), "questions": asked}
        answer: Any = await self._client.post(f"/{self.form}", body={"model": self.model, **body}, cast_to=object)
        answers = answer["answers"]
        if self.form == "decisions":  # answers of other types, such as refusals, are left out
            predicates = [one for one in answers if one.get("type") == "predicate" and one.get("name")]
            answers = {one["name"]: {"type": "noul", "noul": one["probability"]} for one in predicates}
        answers = {name: one for name, one in answers.items() if name in questions}
        return ClassifierResponse.model_validate(
            {"model": answer["model"], "answers": answers, "usage": answer.get("usage")}
        )


def _openai_body(state: str, questions: Mapping[str, Question]) -> dict[str, Any]:
    if others := [one.type for one in questions.values() if not isinstance(one, Noul)]:
        raise TypeError(f"{others[0]} questions are not supported by this endpoint")
    predicates = [
        {"type": "predicate", "name": name, "instructions": state_text(one.instructions)}
        for name, one in questions.items()
    ]
    return {"input": state, "questions": predicates}
