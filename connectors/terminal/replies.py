"""From the words of `packetgate answer` to a turn."""

import json

from connectors.asking import Continue, Reply
from state.errors import RequestError


def reply_or_continue(reply: str | None, edit: str | None, question_id: str) -> Reply | Continue:
    """Return the reply given, the edit given, or, with neither, the wish to go on; a reply is meant for the question.

    Raises:
        RequestError: the edit is not a JSON object.
    """
    if edit is None:
        return Continue() if reply is None else Reply(reply, question_id)
    try:
        args = json.loads(edit)
    except json.JSONDecodeError as error:
        raise RequestError(f"--edit is not JSON: {error.msg} at column {error.colno}") from error
    if not isinstance(args, dict):
        raise RequestError(f"--edit must be a JSON object of arguments, not {type(args).__name__}")
    return Reply({"type": "edit", "args": {"args": args}}, question_id)
