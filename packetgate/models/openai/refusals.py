"""Parameters that a server refuses: dropped or renamed from then on, except for the user's own."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from packetgate.models.options import ModelOptions
from packetgate.models.transport import ESSENTIAL, OF_THE_FORM, error_text, is_too_long, named_in, status_of, wish_in

Payload = dict[str, Any]

TOP_LOGPROBS, FEW_LOGPROBS = 20, 5
"""Alternatives to a token to ask for, and the limit of some servers."""

BAD_REQUEST = (400, 415, 422)
"""Any feature may be meant; with another status only one that is named."""
CREDENTIALS_OR_LOAD = (401, 402, 408, 409, 429)

OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_TYPE = re.compile(r"response_format\W+(?:of\W+)?type")
_LOGPROBS = ("logprobs", "top_logprobs")
_UNNAMED = ("logprobs", "stream_options")
"""What to leave out first where a server does not say what it refuses."""


def without(payload: Payload, refused: Sequence[str]) -> Payload:
    """Return the payload without these parameters, or with their substitutes."""
    payload = {**payload, "extra_body": {**(payload.get("extra_body") or {})}}
    for name in refused:
        for part in (payload, payload["extra_body"]):
            if name not in part:
                continue
            value = part.pop(name)
            if name in OTHER_NAMES:
                part[OTHER_NAMES[name]] = value
            elif name == "top_logprobs" and value > FEW_LOGPROBS:
                part[name] = FEW_LOGPROBS
            elif name in _LOGPROBS:
                for one in _LOGPROBS:
                    part.pop(one, None)
            break
    return payload


def blamed(error: BaseException, sent: Payload, refused: Sequence[str], wishes: Mapping[str, str]) -> str | None:
    """Return the parameter that a server refuses; None if it refuses something else or the user set it.

    Args:
        refused: parameters that were left out already.
        wishes: the user's own parameters, from `wishes_of`.
    """
    status, text = status_of(error), error_text(error).lower()
    if status is None or status in CREDENTIALS_OR_LOAD or is_too_long(error) or wish_in(wishes, error):
        return None
    names = {*sent, *sent["extra_body"]} - {"extra_body", *ESSENTIAL, *wishes}
    name = named_in(error, names, others=())
    if name is None and status in BAD_REQUEST and not says_form(error):
        name = next((one for one in _UNNAMED if one in names), None)
    if name in OTHER_NAMES and not ("support" in text or OTHER_NAMES[name] in text):
        return None  # its value is refused, and without it nothing would bound the answer
    tries = 2 if name == "top_logprobs" else 1
    return name if name and refused.count(name) < tries else None


def refuses_form(error: BaseException | None, wishes: Mapping[str, str]) -> bool:
    """Whether a server may refuse what holds the answer to its form."""
    status = status_of(error)
    if error is None or status is None or status in CREDENTIALS_OR_LOAD or is_too_long(error) or wish_in(wishes, error):
        return False
    return status in BAD_REQUEST or says_form(error)


def says_form(error: BaseException | None) -> bool:
    """Whether an error names what holds an answer to its form."""
    text = f"{error_text(error)} {getattr(error, 'param', '')} {getattr(error, 'code', '')}".lower() if error else ""
    return any(word in text for word in OF_THE_FORM)


def refuses_type(error: BaseException | None) -> bool:
    """Whether a server refuses a type of `response_format`, with any schema."""
    return bool(error and _TYPE.search(f"{error_text(error)} {getattr(error, 'param', '')}"))


def wishes_of(options: ModelOptions, places: Mapping[str, str]) -> dict[str, str]:
    """Return the option behind each parameter that the user set, and where it was set."""
    of_body = {name: f"extra_body.{name}" for name in options.extra_body or {}}
    given = {name: name for name in (*options.sampling, "reasoning_effort") if getattr(options, name) is not None}
    if options.enable_thinking is not None:
        given |= dict.fromkeys(("enable_thinking", "chat_template_kwargs"), "enable_thinking")
    return {
        name: f"{told} is set at {places.get(told.partition('.')[0], 'the options of the model')}"
        for name, told in (given | of_body).items()
    }
