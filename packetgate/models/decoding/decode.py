"""Finding the JSON object in what a model wrote: with a real decoder, never with a pattern over JSON."""

from itertools import takewhile
from typing import Any

from packetgate.models.decoding.call_forms import names_call, read_call, says_call
from packetgate.models.decoding.native_calls import read_answer
from packetgate.models.decoding.values import Reading, read_loose, read_strict
from packetgate.state.errors import DecisionError
from packetgate.state.printing import shorten

MAX_CHARS = 1_000_000


def decode_json(text: str) -> dict[str, Any]:
    """Return the last complete JSON object: drafts and examples come before the answer.

    Tool calls in a family's native markup, or in a list of several, count as one object with the calls that follow
    one another: `{"tool_calls": [{"name": ..., "arguments": {...}}]}`. Calls under that key are brought into this form
    from any other. Only where there is nothing else, JSON is read that is spelled like JavaScript or Python.

    Raises:
        DecisionError: there is no object, or its calls are none; the message says what is wrong with it.
    """
    if not text.strip():
        raise DecisionError("the answer is empty: a JSON object was expected")
    if len(text) > MAX_CHARS:
        raise DecisionError(f"the answer is longer than {MAX_CHARS:,} characters: {shorten(text)!r}")
    readings = read_answer(text, read_strict)
    problem = next((reading.problem for reading in reversed(readings) if reading.problem), "")
    values = _values(readings) or _values(read_answer(text, read_loose))
    if any(value != () for value in values):
        return _normal(values)
    raise DecisionError(f"the answer holds no complete JSON object{problem and f' ({problem})'}: {shorten(text)!r}")


def _values(readings: list[Reading]) -> list[Any]:
    return [reading.value for reading in readings if reading.value is not None]


def _normal(values: list[Any]) -> dict[str, Any]:
    if isinstance(values[-1], tuple):
        last_calls = [*takewhile(lambda value: isinstance(value, tuple), reversed(values))][::-1]
        calls = [call for one in last_calls for call in one]
        if () in last_calls[:-1] or not calls:
            raise DecisionError("a tool call of the answer cannot be read, so that none of them counts")
        return {"tool_calls": [call.as_entry() for call in calls]}
    answer: dict[str, Any] = values[-1]
    if says_call(answer) and any(value != answer and (value == () or says_call(value)) for value in values):
        raise DecisionError("the answer holds several tool calls, and text between them: write them in one list")
    if names_call(answer):
        answer = {"tool_calls": [answer]}
    if not isinstance(answer.get("tool_calls"), list):
        return answer
    try:
        return answer | {"tool_calls": [read_call(entry).as_entry() for entry in answer["tool_calls"]]}
    except ValueError as error:
        raise DecisionError(f"the tool calls of the answer cannot be read: {error}") from error
