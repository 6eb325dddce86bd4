"""Grants: remembered approvals, denials, and trust in a tool whose reads are unconfirmed.

The journal records each grant, its uses and its revocation.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from packetgate.gate.journal import Entry, Journal, entry_for
from packetgate.gate.orders import is_requested
from packetgate.state.base import Section, new_id, now
from packetgate.state.origins import ArgumentRole
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Header
from packetgate.tools.policy.patterns import ANYTHING, fits, is_date, literal_pattern, may_fit
from packetgate.tools.policy.rules import arguments_line
from packetgate.tools.text.roles import holds_quantity

GRANT_GIVEN, GRANT_USED, GRANT_REVOKED = "grant_given", "grant_used", "grant_revoked"
ID_LENGTH = 8
_WITHOUT_USER_WORDS = frozenset({"proxy"})
"""Channels in which an agent calls tools, and the user's words are unknown."""
OPERATOR_CHANNELS = frozenset({"terminal", "library"})
"""Channels in which the user is an operator of this installation, whose trust in a tool applies in every channel."""


class Grant(Section):
    """A remembered approval or denial, or trust in a tool: each unconfirmed read by it may run."""

    grant_id: str = Field(default_factory=lambda: new_id()[:ID_LENGTH])
    effect: Literal["allow", "deny", "trust"]
    tool: str
    digest: str
    """Digest of the tool's definition and server. A denial is valid for any digest, other grants only for this one."""
    arguments: dict[str, str] = {}
    """For each argument, the pattern that its value must fit (`tools.policy.patterns`)."""
    from_user: tuple[str, ...] = ()
    """Arguments that may also be any value in the user's words."""
    from_server: tuple[str, ...] = ()
    """Arguments that may also be a field of an output of the tool's server, or a value in the user's words."""
    at_most: dict[str, float] = {}
    """For each number, the largest covered value, from 0. Numbers that only free text contains are not covered."""
    channel: str
    person: str
    """The person or client whose calls the grant covers."""
    session_id: str | None = None
    uses: int = Field(default=1, ge=1)
    expires_at: AwareDatetime | None = None
    given_at: datetime = Field(default_factory=now)
    question_id: str = ""

    @property
    def line(self) -> str:
        """The grant's terms and bounds as text for users."""
        bounds = [f"{self.uses} times"] if self.effect == "allow" else []
        bounds += [f"until {self.expires_at:%Y-%m-%d %H:%M} UTC"] if self.expires_at else []
        bounds += ["in this session"] if self.session_id else []
        bounds += [f"since {self.given_at:%Y-%m-%d}"] if self.effect == "trust" else []
        return f"{self.terms}; {', '.join([*bounds, self.requester_line])}"

    @property
    def requester_line(self) -> str:
        """The person and channel whose calls the grant covers, as text for users."""
        if self.is_operators:
            return "for every channel"
        return f"asked by {self.person} in {self.channel}" if self.person else f"asked in {self.channel}"

    @property
    def terms(self) -> str:
        """The effect, tool and arguments of the grant as text for users."""
        if self.effect == "trust":
            return f"trust {self.tool} as a read"
        server = self.tool.partition(".")[0]
        alternatives = dict.fromkeys(self.from_user, "from your words")
        alternatives |= dict.fromkeys(self.from_server, f"from your words or a field of {server}")
        alternatives |= {name: f"at most {literal_pattern(limit)}" for name, limit in self.at_most.items()}
        return f"{self.effect} {self.tool}{arguments_line(self.arguments, alternatives)}"

    @property
    def is_operators(self) -> bool:
        """Whether an operator trusts the tool, in every channel."""
        return self.effect == "trust" and self.channel in OPERATOR_CHANNELS

    def covers(self, call: ToolCall, digest: str, header: Header) -> bool:
        """Return whether the grant covers a call. An approval compares values literally, a denial in any spelling."""
        is_own = (header.origin, header.person) == (self.channel, self.person)
        if call.tool_name != self.tool or not (is_own or self.is_operators):
            return False
        if self.session_id not in {None, header.session_id}:
            return False
        params = call.params
        if self.effect == "deny":
            return all(name in params and may_fit(params[name], pattern) for name, pattern in self.arguments.items())
        if self.effect == "trust":
            return self.digest == digest and call.is_unconfirmed_read
        return self.digest == digest and not call.is_flagged and all(self._allows(name, call) for name in params)

    def _allows(self, name: str, call: ToolCall) -> bool:
        value, pattern = call.params[name], self.arguments.get(name)
        if name in self.at_most and isinstance(value, int | float) and not isinstance(value, bool):
            return 0 <= value <= self.at_most[name] and not call.is_in_text(name)
        if pattern is not None and pattern != ANYTHING and fits(value, pattern):
            return True
        if holds_quantity(name, value):
            return False
        if pattern == ANYTHING:
            return call.role_of(name) is ArgumentRole.PAYLOAD or is_date(value)
        return (name in {*self.from_user, *self.from_server} and call.is_from_user(name)) or (
            name in self.from_server and call.is_from_server(name)
        )


@dataclass(frozen=True)
class GrantStatus:
    """A grant with its recorded uses."""

    grant: Grant
    use_count: int
    is_revoked: bool

    @property
    def is_valid(self) -> bool:
        """Whether the grant is not revoked, expired or used up."""
        expired = self.grant.expires_at is not None and now() > self.grant.expires_at
        used_up = self.grant.effect == "allow" and self.use_count >= self.grant.uses
        return not (self.is_revoked or expired or used_up)


@dataclass(frozen=True)
class Grants:
    """Stores, finds and revokes the grants of a journal."""

    journal: Journal

    async def all(self) -> list[GrantStatus]:
        """Return all grants, oldest first, including those that are no longer valid."""
        entries = [row.entry for row in await self.journal.event_entries(GRANT_GIVEN, GRANT_USED, GRANT_REVOKED)]
        stored = [entry.detail["grant"] for entry in entries if entry.event == GRANT_GIVEN and "grant" in entry.detail]
        grants = [Grant.model_validate(grant) for grant in stored]  # the grants of a forgotten session are erased
        uses = Counter(_grant_id(entry) for entry in entries if entry.event == GRANT_USED)
        revoked = {_grant_id(entry) for entry in entries if entry.event == GRANT_REVOKED}
        return [GrantStatus(grant, uses[grant.grant_id], grant.grant_id in revoked) for grant in grants]

    async def trusted_tools(self) -> dict[str, Grant]:
        """Return the valid grants of operators who trust a tool as a read, by the tool's digest."""
        grants = (status.grant for status in await self.all() if status.is_valid)
        return {grant.digest: grant for grant in grants if grant.is_operators}

    async def covering(
        self, call: ToolCall, digest: str, header: Header, words: str, *, only_trust: bool
    ) -> Grant | None:
        """Return the valid grant for a call, a denial first, an approval last; None without a grant.

        An approval covers a call only if `words` (the user's, in this turn) ask for the call, or the proxy makes it.
        """
        grants = [
            status.grant
            for status in await self.all()
            if status.is_valid and status.grant.covers(call, digest, header)
            if status.grant.effect == "trust" or not only_trust
        ]
        if header.origin not in _WITHOUT_USER_WORDS and not is_requested(call, words):
            grants = [grant for grant in grants if grant.effect != "allow"]
        return min(grants, key=lambda grant: ("deny", "trust", "allow").index(grant.effect), default=None)

    async def give(self, grant: Grant, header: Header) -> None:
        """Store a grant."""
        key = f"{GRANT_GIVEN}:{grant.grant_id}"
        await self.journal.record(entry_for(header, GRANT_GIVEN, "", {"grant": grant.model_dump(mode="json")}, key))

    async def use(self, grant_id: str, call: ToolCall, header: Header) -> bool:
        """Record one use of a grant; return False if no use is left. Concurrent uses are counted separately.

        Uses of a trusted tool are not limited, and not recorded.
        """
        status = await self._status(grant_id)
        if status is not None and status.grant.effect == "trust":
            return status.is_valid
        while status is not None and status.is_valid:
            number = status.use_count + 1
            detail = {"grant_id": grant_id, "line": status.grant.line}
            if await self.journal.record(
                entry_for(header, GRANT_USED, call.call_id, detail, f"{GRANT_USED}:{grant_id}:{number}")
            ):
                return True
            status = replace(status, use_count=number)
        return False

    async def revoke(self, grant_id: str) -> bool:
        """Revoke a grant, and return whether it was valid."""
        status = await self._status(grant_id)
        if status is None or not status.is_valid:
            return False
        return await self.journal.record(
            Entry(GRANT_REVOKED, detail={"grant_id": grant_id}, key=f"{GRANT_REVOKED}:{grant_id}")
        )

    async def _status(self, grant_id: str) -> GrantStatus | None:
        return next((status for status in await self.all() if status.grant.grant_id == grant_id), None)


def _grant_id(entry: Entry) -> str:
    return (entry.key or "::").split(":")[1]  # the detail may be erased
