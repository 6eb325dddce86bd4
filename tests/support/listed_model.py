"""A LangChain chat model that answers from a list, and approves every call in reviews."""

from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage


class ListedModel(FakeListChatModel):
    """Answers from the list, except to reviews."""

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        is_review = messages[-1].text.rstrip().endswith("Is this call right?")
        return "yes" if is_review else super()._call(messages, *args, **kwargs)
