"""A decision endpoint, asked in OpenAI's form or in that of System One, which llama.cpp, Ollama and vLLM serve too."""

import asyncio
from collections.abc import Mapping
from typing import Any, Self

import openai
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, Noul, Question, State
from pydantic import PrivateAttr, SecretStr

from packetgate.models.decisions import words_in
from packetgate.models.endpoint import Endpoint
from packetgate.models.transport import MAX_RETRIES
from packetgate.state.errors import ModelError


class DecisionEndpoint(BaseDecisionModel):
    """An endpoint that answers typed questions with probabilities; in OpenAI's form yes-or-no questions alone."""

    form: str
    """`decisions`, which is OpenAI's, or `systemone`: also the last part of the path that requests are sent to."""
    openai_api_base: str
    openai_api_key: SecretStr
    key_variable: str
    request_timeout: float
    provider: str | None = None
    headers: Mapping[str, str] = {}
    _client: openai.AsyncOpenAI = PrivateAttr()

    @classmethod
    def at(cls, endpoint: Endpoint, model: str, form: str, headers: Mapping[str, str]) -> Self:
        """Return a model at an endpoint. Nothing is sent yet.

        Raises:
            ModelError: OpenAI itself is meant, and there is no key or it has no such endpoint.
        """
        if form == "systemone" and endpoint.is_openai:
            raise ModelError(
                f"systemone:{model}: OpenAI has no such endpoint: set PACKETGATE_PRIME_BASE_URL to a server that has, "
                "such as http://127.0.0.1:11434/v1"
            )
        return cls(
            model=model,
            form=form,
            openai_api_base=endpoint.base_url,
            openai_api_key=endpoint.key_for(model),
            key_variable=endpoint.key_variable,
            request_timeout=endpoint.timeout,
            provider="openai" if endpoint.is_openai else None,
            headers=headers,
        )

    def model_post_init(self, context: Any, /) -> None:
        """Make the client."""
        self._client = openai.AsyncOpenAI(
            base_url=self.openai_api_base,
            api_key=self.openai_api_key.get_secret_value(),
            timeout=self.request_timeout,
            max_retries=MAX_RETRIES,
            # A kept connection belongs to the event loop that opened it, and an endpoint outlives `asyncio.run`.
            default_headers={**self.headers, "Connection": "close"},
        )

    @property
    def client(self) -> openai.AsyncOpenAI:
        """The client that sends the requests."""
        return self._client

    @property
    def model_name(self) -> str:
        """The name that the endpoint knows the model by."""
        return self.model

    @property
    def _provider(self) -> str:
        return self.provider or self.form

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        return asyncio.run(self._aclassify(state, questions))

    async def _aclassify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        is_openai = self.form == "decisions"
        body = _in_openais(words_in(state), questions) if is_openai else _in_system_ones(words_in(state), questions)
        found: Any = await self._client.post(f"/{self.form}", body={"model": self.model, **body}, cast_to=object)
        answers = _from_openais(found["answers"]) if is_openai else found["answers"]
        asked = {name: one for name, one in answers.items() if name in questions}
        return ClassifierResponse.model_validate(
            {"model": found["model"], "answers": asked, "usage": found.get("usage")}
        )


def _in_openais(about: str, questions: Mapping[str, Question]) -> dict[str, Any]:
    if others := [one.type for one in questions.values() if not isinstance(one, Noul)]:
        raise TypeError(f"{others[0]} questions are not put in this form")
    asked = {name: words_in(one.instructions) for name, one in questions.items()}
    predicates = [{"type": "predicate", "name": name, "instructions": words} for name, words in asked.items()]
    return {"input": about, "questions": predicates}


def _from_openais(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the probabilities by name. What is no predicate is none, such as a refusal."""
    predicates = [one for one in answers if one.get("type") == "predicate"]
    return {one["name"]: {"type": "noul", "noul": one["probability"]} for one in predicates if one.get("name")}


def _in_system_ones(about: str, questions: Mapping[str, Question]) -> dict[str, Any]:
    asked = {name: one.model_dump(mode="json") for name, one in questions.items()}
    return {
        "state": about,
        "questions": {name: {k: v for k, v in one.items() if v is not None} for name, one in asked.items()},
    }
