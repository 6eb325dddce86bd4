"""Classify replies by rules about tools and values."""

from collections.abc import Sequence

from packetgate.deciders.replies import (
    QUESTION_WORDS,
    Change,
    Message,
    ReplyReader,
    TypedReply,
    description_of,
    is_request,
    neither,
)
from packetgate.gate.replies import parse_words
from packetgate.state.origins import ArgumentRole
from packetgate.state.printing import code_span, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.spec.tool_spec import ToolSpec, types_of
from packetgate.tools.text.reading import has_question, mentions_in, unquoted_words, verbs_in
from packetgate.tools.text.roles import role_of
from packetgate.tools.text.words import query_terms, words_of

_SURE = 0.8  # if another tool serves the message with this probability, the message is a request, even without a verb
_EITHER = frozenset("not or either except unless if neither nor".split())


class ReflexReplyReader(ReplyReader):
    """Also asks which tool a message fits, and which values it contains. The needed modules are loaded at first use."""

    def asks_for_other_tool(self, message: Message, text: str, tools: Sequence[str], *, surely: bool = True) -> bool:
        """Return whether the best tool for a text is not one of `tools`, and serves it with enough probability."""
        from packetgate.reflex.fit import MIN_TOOL_PROBABILITY, best_fits, probability_of_any  # numpy is slow to load

        fits = best_fits(text, message.catalogue, message.packet.header.local_time)
        least = _SURE if surely else MIN_TOOL_PROBABILITY
        return bool(fits) and probability_of_any(fits) >= least and fits[0].spec.name not in tools

    def change_of(self, message: Message, call: ToolCall) -> Change:
        """Return the change that a message makes to a call."""
        from packetgate.reflex.changes import read_change
        from packetgate.reflex.follow_ups import read_request

        spec = message.catalogue.get(call.tool_name)
        if spec is None or call.started_at is not None:
            return Change()
        request = read_request(message.packet, message.catalogue).text
        return read_change(message.text, spec, call.params, request, message.packet.header.local_time)

    def classify_answer(self, message: Message, spec: ToolSpec, parameter: str) -> TypedReply:
        """Classify a message, given a question for one argument of a tool."""
        from packetgate.reflex.fit import QUERIES
        from packetgate.reflex.values.filling import fill_parameters, is_bare, is_narrow, value_from_answer

        text, plain = message.text, message.plain
        reply, request = TypedReply("reply", text), TypedReply("request", text)
        if parse_words(text).outcome is not ApprovalOutcome.ANSWERED:
            return reply
        schema = spec.parameters.get(parameter, {})
        about = f" ({shorten(str(schema['description']), 200)})" if "description" in schema else ""
        wanted = f"{spec.name} still waits for {code_span(parameter)}{about}."
        no_value = neither(f"This is not a valid value. {wanted}")
        named, asks, requests = mentions_in(text), has_question(text), is_request(plain)
        if asks and not named.has_target and not {*query_terms(text)} - QUESTION_WORDS:
            return neither(f"{description_of(spec)} {wanted}")
        if role_of((parameter,), schema, None) is ArgumentRole.PAYLOAD or QUERIES & {*words_of(parameter)}:
            return reply
        if message.hesitates and not named.has_target:
            return no_value
        now = message.packet.header.local_time
        value = value_from_answer(spec, parameter, text, now)
        if is_bare(text) and not requests:
            return reply if value is not None and not asks else no_value
        if _EITHER & {*unquoted_words(text)} and "boolean" not in types_of(schema) and not requests:
            return request if asks else no_value
        fits_other_tool = self.asks_for_other_tool(message, plain, [spec.name], surely=False)
        narrow = is_narrow(spec, parameter)
        found = fill_parameters(spec, text, now=now).likely_params()
        is_found = parameter in found and (not narrow or named.has_target or "@" in text)
        if requests:
            return request if fits_other_tool or not is_found else reply
        if asks and (not is_found or value == text):  # a whole question is not a value
            return request
        if narrow and not is_found and not named.has_target:
            return request if fits_other_tool or verbs_in(text) else no_value
        if not is_found and self.asks_for_other_tool(message, text, [spec.name]):
            return request
        return reply if value is not None or is_found else no_value
