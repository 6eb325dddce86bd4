"""A decision endpoint: typed questions in, probabilities out, no text. OpenAI's own, or whoever speaks its protocol."""

import asyncio
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import openai
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai.decisions import OpenAIDecisions, Predicate

from packetgate.models.endpoint import Endpoint
from packetgate.models.requests import exchange
from packetgate.models.transport import MAX_RETRIES, named_errors
from packetgate.models.turns import attempt
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError
from packetgate.state.printing import compact_json

warnings.filterwarnings("ignore", "The class `OpenAIDecisions` is in beta")


@dataclass(frozen=True)
class Probabilities:
    """How probable it is that each statement is true; those that were not answered as asked are missing."""

    of: Mapping[str, float]
    usage: TokenUsage


class DecisionEndpoint:
    """An endpoint that says how probable statements are."""

    def __init__(self, name: str, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        """Nothing is sent yet.

        Raises:
            ModelError: OpenAI itself is meant and there is no key.
        """
        self.name = self.model_name = name
        self.provider = "openai" if endpoint.is_openai else None
        self.openai_api_base, self.openai_api_key = endpoint.base_url, endpoint.key_for(name)
        self.request_timeout, self.key_variable = endpoint.timeout, endpoint.key_variable
        self.client = openai.AsyncOpenAI(
            base_url=endpoint.base_url, api_key=self.openai_api_key.get_secret_value(), timeout=endpoint.timeout
        )
        self._decisions = OpenAIDecisions(
            model=name,
            base_url=endpoint.base_url,
            api_key=self.openai_api_key,
            timeout=endpoint.timeout,
            max_retries=MAX_RETRIES,
            # A kept connection belongs to the event loop that opened it, and an endpoint outlives `asyncio.run`.
            default_headers={**headers, "Connection": "close"},
        )

    async def probabilities(self, about: str, statements: Mapping[str, str]) -> Probabilities:
        """Ask how probable each statement is, given what it is about.

        Raises:
            DecisionError: the endpoint cannot be asked, or its answer cannot be read.
        """
        questions = {name: Predicate(instructions=text) for name, text in statements.items()}
        sent = [HumanMessage(about), *(HumanMessage(text) for text in statements.values())]
        with exchange(self, sent, {}) as answered:
            with attempt(self) as limit, named_errors(self, limit.way_out):
                async with asyncio.timeout_at(limit.deadline):
                    found = await self._decisions.ainvoke({"input": about, "questions": dict(questions)})
            usage = TokenUsage(
                input_tokens=max(0, found.usage.input_tokens or 0), output_tokens=max(0, found.usage.output_tokens or 0)
            )
            answered(AIMessage(compact_json({name: one.model_dump() for name, one in found.answers.items()})))
        of = {name: one.probability for name, one in found.predicates.items() if name in questions}
        if not of:
            raise DecisionError(f"{self.name} answered none of the questions, or with no probability", usage)
        return Probabilities(of, usage)
