"""Approvals that are remembered: given once by a person, bounded, and used up.

They are entries of the journal: given, used, revoked. What stands is what follows from these, so that whoever reads
the journal reads how every grant came about and what it was used for.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from packetgate.state.base import Section, new_id, now
from packetgate.state.origins import ArgumentRole
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Header
from packetgate.tools.execution.journal import Entry, Journal
from packetgate.tools.policy.patterns import ANYTHING, fits, is_moment, is_number, may_fit
from packetgate.tools.policy.rules import arguments_line
from packetgate.tools.provenance.actions import is_wished

GIVEN, USED, REVOKED = "grant_given", "grant_used", "grant_revoked"
ID_LENGTH = 8
ONE_PERSON = frozenset({"terminal", "notebook"})
"""Channels in which one person speaks."""
WORDLESS = frozenset({"proxy"})
"""Channels in which an agent calls tools, and nobody says what for."""


class Grant(Section):
    """What a person said once, to hold for calls like the one that they were asked about."""

    grant_id: str = Field(default_factory=lambda: new_id()[:ID_LENGTH])
    effect: Literal["allow", "deny"]
    tool: str
    digest: str
    """Of the tool's definition and its server: another definition wants another word. A denial holds for any."""
    arguments: dict[str, str]
    """Patterns of arguments, as in `tools.policy.patterns`; what may be anything is still no address of any kind."""
    said: tuple[str, ...] = ()
    """Arguments that may also be whatever stands in the user's own words."""
    given_back: tuple[str, ...] = ()
    """Arguments that may also be what a field of an output of the tool's own server holds."""
    counted: tuple[str, ...] = ()
    """Arguments that may also be any number that no free text gave."""
    channel: str
    """Where it was given, and where alone it holds."""
    person: str | None = None
    """Whose calls it is about, as the header of their packets has it; None: it was given before that was kept."""
    session_id: str | None = None
    """The only session that it holds for; None: all of them."""
    uses: int = Field(default=1, ge=1)
    """How many calls may use it."""
    expires_at: AwareDatetime | None = None
    given_at: datetime = Field(default_factory=now)
    question_id: str = ""
    """What it answered."""

    @property
    def line(self) -> str:
        """The grant as a person reads it."""
        bounds = [] if self.effect == "deny" else [f"{self.uses} times"]
        bounds += [f"until {self.expires_at:%Y-%m-%d %H:%M} UTC"] if self.expires_at else []
        bounds += ["in this session"] if self.session_id else []
        return f"{self.terms}; {', '.join([*bounds, self.asked])}"

    @property
    def asked(self) -> str:
        """Who asks for the calls that it is about, and where."""
        return f"asked by {self.person} in {self.channel}" if self.person else f"asked in {self.channel}"

    @property
    def is_nobodys(self) -> bool:
        """Whether it is an approval of which nobody knows any more whom of several it was given for."""
        return self.effect == "allow" and self.person is None and self.channel not in ONE_PERSON

    @property
    def terms(self) -> str:
        """What it allows or denies, as a person reads it, without its bounds."""
        server = self.tool.partition(".")[0]
        leeway = dict.fromkeys(self.said, "as you say")
        leeway |= dict.fromkeys(self.given_back, f"as you say or a field from {server} gives")
        leeway |= dict.fromkeys(self.counted, "any number that no text gave")
        return f"{self.effect} {self.tool}{arguments_line(self.arguments, leeway)}"

    def covers(self, call: ToolCall, digest: str, asked: Header) -> bool:
        """Whether it speaks of a call. An approval is read to the letter, a refusal as widely as it can be meant."""
        if call.tool_name != self.tool or asked.origin != self.channel:
            return False
        if self.session_id not in {None, asked.session_id} or self.person not in {None, asked.person}:
            return False
        given = call.params
        if self.effect == "deny":
            return all(name in given and may_fit(given[name], wanted) for name, wanted in self.arguments.items())
        return self.digest == digest and not call.is_flagged and all(self._fits(name, call) for name in given)

    def _fits(self, name: str, call: ToolCall) -> bool:
        value, wanted = call.params[name], self.arguments.get(name)
        if wanted == ANYTHING:
            return call.role_of(name) is ArgumentRole.PAYLOAD or is_moment(value)
        return (
            (wanted is not None and fits(value, wanted))
            or (name in {*self.said, *self.given_back} and call.is_said(name))
            or (name in self.given_back and call.is_given_back(name))
            or (name in self.counted and is_number(value) and not call.is_in_text(name))
        )


@dataclass(frozen=True)
class Standing:
    """A grant, and what has become of it."""

    grant: Grant
    used: int
    revoked: bool

    @property
    def holds(self) -> bool:
        """Whether there is anything left of it."""
        lapsed = self.grant.expires_at is not None and now() > self.grant.expires_at
        spent = self.grant.effect == "allow" and self.used >= self.grant.uses
        return not (self.revoked or lapsed or spent or self.grant.is_nobodys)


@dataclass(frozen=True)
class Grants:
    """The remembered approvals of one journal."""

    journal: Journal

    async def all(self) -> list[Standing]:
        """Return every grant that was ever given, oldest first."""
        entries = [row.entry for row in await self.journal.of_events(GIVEN, USED, REVOKED)]
        given = [entry.detail["grant"] for entry in entries if entry.event == GIVEN and "grant" in entry.detail]
        grants = [Grant.model_validate(one) for one in given]  # one whose session was forgotten is gone with it
        used = Counter(_of(entry) for entry in entries if entry.event == USED)
        revoked = {_of(entry) for entry in entries if entry.event == REVOKED}
        return [Standing(grant, used[grant.grant_id], grant.grant_id in revoked) for grant in grants]

    async def covering(self, call: ToolCall, digest: str, packet: CognitionPacket) -> Grant | None:
        """Return what holds for a call of a tool with this digest; a refusal before an approval.

        An approval holds only for what this turn asks for.
        """
        held = [one.grant for one in await self.all() if one.holds and one.grant.covers(call, digest, packet.header)]
        if packet.header.origin not in WORDLESS and not is_wished(call, packet.content.user_words):
            held = [grant for grant in held if grant.effect == "deny"]
        return min(held, key=lambda grant: grant.effect == "allow", default=None)

    async def give(self, grant: Grant, packet: CognitionPacket) -> None:
        """Remember an approval, or a refusal."""
        key = f"{GIVEN}:{grant.grant_id}"
        await self.journal.record(_entry(GIVEN, packet, {"grant": grant.model_dump(mode="json")}, key))

    async def use(self, grant_id: str, call: ToolCall, packet: CognitionPacket) -> bool:
        """Use up one of its calls; returns whether there was one left. Of two at once, each takes another."""
        standing = await self._standing(grant_id)
        while standing is not None and standing.holds:
            number = standing.used + 1
            detail = {"grant_id": grant_id, "line": standing.grant.line}
            entry = _entry(USED, packet, detail, f"{USED}:{grant_id}:{number}", call.call_id)
            if await self.journal.record(entry):
                return True
            standing = replace(standing, used=number)
        return False

    async def revoke(self, grant_id: str) -> bool:
        """Take a grant back; returns whether it still held."""
        standing = await self._standing(grant_id)
        if standing is None or not standing.holds:
            return False
        return await self.journal.record(Entry(REVOKED, detail={"grant_id": grant_id}, key=f"{REVOKED}:{grant_id}"))

    async def _standing(self, grant_id: str) -> Standing | None:
        return next((one for one in await self.all() if one.grant.grant_id == grant_id), None)


def _of(entry: Entry) -> str:
    """Return which grant an entry is about: its key says so even when its detail is erased."""
    return (entry.key or "::").split(":")[1]


def _entry(event: str, packet: CognitionPacket, detail: dict[str, Any], key: str, call_id: str = "") -> Entry:
    return Entry(event, packet.header.session_id, packet.header.packet_id, call_id, detail, key)
