"""The gate's facts about the request of a call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from packetgate.gate.grants import Grant
from packetgate.gate.provenance.flagging import origins_of
from packetgate.gate.provenance.own_words import UserWords
from packetgate.gate.provenance.sources import FreeText, OutputField, SourceTexts, sources_in_calls
from packetgate.state.context import RoutingContext
from packetgate.state.origins import SessionLabel
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Header
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.risk.call import risk_fields, with_risk
from packetgate.tools.spec.tool_spec import CallHints, ToolSpec
from packetgate.tools.text.values import fold_text, plain_text

SHORT_CHARS = 4_000
"""Maximum size, in characters, of texts checked on the event loop: a thread costs more than these checks."""
CHOSEN_BY_CLIENT = "chosen by the client, which gave no reason"


@dataclass(frozen=True)
class RequestedCall:
    """A call that a client requests."""

    name: str
    params: Mapping[str, Any]
    refusal_if_changing: str = ""
    """For a call that must only read: the instruction to the client if the call would change something."""
    call_id: str = ""
    """Journal id of a call that may be proposed again; if empty, the call gets a new id."""


@dataclass(frozen=True)
class Facts:
    """The user, the user's words, earlier results, settings and offered tools; without any verdict."""

    header: Header
    """Session, turn, channel and person: the journal's rows and the grants name them."""
    catalogue: Catalogue = field(default_factory=Catalogue)
    """The tools that the settings allow."""
    offered: frozenset[str] = frozenset()
    """Names that may be called."""
    results_only: frozenset[str] = frozenset()
    """Offered tools that may only read the rest of a long result."""
    settings: RoutingContext = field(default_factory=RoutingContext)
    words: str = ""
    """The user's words for this request."""
    request: str = ""
    """`words`, after the earlier messages that a short message such as "Go on." continues."""
    session_words: str = ""
    """Everything that the user wrote in the session."""
    are_user_words: bool = True
    """Whether the words are surely the user's: a client that has read outputs may have written other words."""
    earlier: tuple[ToolCall, ...] = ()
    """The session's calls with a result, oldest first."""
    other_texts: tuple[tuple[str, str], ...] = ()
    """Attachments, earlier answers and messages that a client supplied: (source, text), newest first."""
    labels: tuple[SessionLabel, ...] = ()
    can_ask: bool = True
    """Whether anybody can be asked."""
    renames_calls: bool = False
    """Whether the client gives a repeated call a new id, so that only its digest tells that it was made before."""
    grants: Mapping[str, Grant] = field(default_factory=dict)
    """The grants that cover the calls, by call id; the gate fills them in."""

    hints: Mapping[str, CallHints] = field(default_factory=dict)
    """The servers' hints on the calls, by call id; the gate fills them in."""

    @cached_property
    def is_short(self) -> bool:
        """Whether the texts are so short that checking a call takes about a millisecond."""
        texts = [self.session_words or self.words, *(text for _, text in self.other_texts)]
        for call in self.earlier:
            texts += [str(call.params), *([call.result.output, str(call.result.structured)] if call.result else [])]
        return sum(map(len, texts)) < SHORT_CHARS

    @cached_property
    def sources(self) -> SourceTexts:
        """The texts that the values of calls are traced to. Blocking: slow for large results."""
        user = UserWords(self.session_words or self.words)
        found = sources_in_calls(self.earlier, user)
        found += [FreeText(source, plain_text(text)) for source, text in self.other_texts]
        return SourceTexts(
            user=user,
            request=fold_text(self.request or self.words),
            fields=tuple(source for source in found if isinstance(source, OutputField)),
            free_texts=tuple(source for source in found if isinstance(source, FreeText)),
            labels={label.label: label.source for label in self.labels},
            client_words=not self.are_user_words,
            earlier=self.earlier,
        )

    def traced_call(self, spec: ToolSpec, params: Mapping[str, Any], **fields: Any) -> ToolCall:
        """Return a call with its risk, the origins of its arguments, and other fields. Blocking."""
        fields |= {"provenance": origins_of(params, spec, self.sources), "traced_for": spec.digest}
        return ToolCall(tool_name=spec.name, params=dict(params), **fields, **risk_fields(spec, params))

    def current_call(self, call: ToolCall, hints: CallHints | None = None) -> ToolCall:
        """Return a call with its current risk, and with origins traced for the tool's current definition. Blocking.

        Args:
            hints: the server's hints on the call; reads and changes are traced differently.
        """
        spec = self.catalogue.get(call.tool_name)
        rated = with_risk(call, spec, hints)
        if spec is None or (hints is None and call.traced_for == spec.digest):
            return rated
        traced_for = spec.digest if hints is None else ""  # a hint applies to this judgement only
        return rated.changed(provenance=origins_of(call.params, spec, self.sources, hints), traced_for=traced_for)
