"""From the words of `packetgate answer` to a turn."""

import json

from packetgate.connectors.asking import Continue, Reply
from packetgate.state.errors import RequestError


def reply_or_continue(reply: str | None, edit: str | None, question_id: str) -> Reply | Continue:
    """Return the reply given, the edit given, or, with neither, the wish to go on; a reply is meant for the question.

    An edit of several calls is a list: new arguments for a call, or a word such as "yes" or "no".

    Raises:
        RequestError: the edit is neither a JSON object nor such a list.
    """
    if edit is None:
        return Continue() if reply is None else Reply(reply, question_id)
    try:
        given = json.loads(edit)
    except json.JSONDecodeError as error:
        raise RequestError(f"--edit is not JSON: {error.msg} at column {error.colno}") from error
    each = given if isinstance(given, list) else [given]
    if not each or not all(isinstance(one, dict) or (isinstance(one, str) and isinstance(given, list)) for one in each):
        raise RequestError(
            "--edit must be a JSON object of arguments, or a list with one, or a word such as "
            f'"yes", for each call, not {type(given).__name__}'
        )
    decisions = [{"type": "edit", "args": {"args": one}} if isinstance(one, dict) else one for one in each]
    return Reply({"decisions": decisions}, question_id)
