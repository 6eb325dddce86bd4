"""A question as an assistant's message, and the user's next message as the reply to it."""

import json
import re
from typing import Any

from packetgate.connectors import rendering
from packetgate.state.errors import RequestError
from packetgate.state.printing import fenced

SHOWN = 16
"""Digits of a question's id that its message ends with: nobody guesses them."""

_MARK = re.compile(rf"\(question [0-9a-f]{{{SHOWN}}}\)\s*$")
_EDIT = re.compile(r"\s*edit\s*:?\s*(?=[\[{])", re.IGNORECASE)


def written(question: dict[str, Any]) -> str:
    """Return a question as a message: all that will run, as a terminal shows it, in a block that nothing in it ends."""
    body = fenced(rendering.question(question).plain.rstrip("\n"), "text")
    mark = f"(question {str(question.get('question_id', ''))[:SHOWN]})"
    if question.get("kind") == "question":
        return f"{body}\n\nAnswer in your own words. {mark}"
    requests = question["action_requests"]
    more = [word for word in requests[0].get("remember", ()) if all(word in one["remember"] for one in requests)]
    words = ", ".join(f"`{word}`" for word in ("yes", "no", "skip", *more))
    edit = "`edit {...}` with other arguments" if len(requests) == 1 else "`edit [{...}, ...]` with arguments for each"
    every = "" if len(requests) == 1 else f" for all {len(requests)}"
    return (
        f"{body}\n\nThis waits for you, and has not run. Answer {words}{every}, {edit}, or what to do instead. {mark}"
    )


def is_question(text: str) -> bool:
    """Whether a message ends as a question's does."""
    return _MARK.search(text) is not None


def reply_in(words: str, question: dict[str, Any]) -> Any:
    """Return the reply that a message is: the user's words, or an edit.

    Raises:
        RequestError: the edit cannot be read.
    """
    begins = _EDIT.match(words)
    if begins is None or question.get("kind") == "question":
        return words
    requests = question["action_requests"]
    try:
        given = json.loads(words[begins.end() :])
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the arguments are not JSON: {error}; nothing was run, the question still waits") from error
    edited = given if isinstance(given, list) else [given]
    if len(edited) != len(requests) or not all(isinstance(one, dict) for one in edited):
        raise RequestError(
            f"an edit of {len(requests)} calls takes as many objects of arguments; nothing was run, the question waits"
        )
    pairs = zip(requests, edited, strict=True)
    return {
        "decisions": [{"type": "edit", "edited_action": {"name": one["name"], "args": args}} for one, args in pairs]
    }
