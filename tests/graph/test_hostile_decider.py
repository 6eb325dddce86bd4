"""On real servers, a hostile decider runs nothing unapproved, nothing outside the root and nothing through a shell."""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from support import hostile_server
from support.graphs import Session, session
from support.hostile_decider import MARKER, SECRET, HostileDecider, Place, forged_palette
from support.palettes import NIGHTLY
from support.programs import require

from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Continue, Finished, Reply, Say, run_turn
from packetgate.state.base import now
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk
from packetgate.state.sections import Approval, ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.toolsets.builtin.sandbox import SandboxSettings
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.opening import builtin_servers, new_connection

TURNS, CALLS = (125, 250) if NIGHTLY else (25, 50)
"""Number of turns in each of the four settings."""
MAX_REPLIES = 20

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800 if NIGHTLY else 300)]


@dataclass
class Approver:
    """Approves or denies every question, and records the approved calls."""

    approves: bool
    shown: list[tuple[str, str]] = field(default_factory=list)
    """The approved calls: tool and arguments as JSON."""

    def reply(self, question: dict[str, Any]) -> Reply:
        """Return the decision on each call of a question."""
        requests = question["action_requests"]
        if question["kind"] == "question" or not self.approves:
            return Reply("no", question["question_id"])
        self.shown += [(one["name"], _written(one["args"])) for one in requests]
        return Reply({"decisions": [{"type": "approve"}] * len(requests)}, question["question_id"])


@pytest.mark.parametrize("approves", [False, True], ids=["denied", "approved"])
@pytest.mark.parametrize("switched_on", [False, True], ids=["off", "on"])
async def test_a_hostile_decider_runs_nothing_unapproved(
    switched_on: bool,
    approves: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("HOSTILE_CANARY", SECRET)
    place, recording = Place(tmp_path / "place").made(), tmp_path / "recording"
    before, outside = contents(place.root), contents(place.outside)
    decider = HostileDecider(random.Random(f"{switched_on}{approves}"), place)
    approver, counts = Approver(approves), decider.counts
    async with session(
        decider.deciders(),
        *(builtin_servers(place.root, sandbox=SandboxSettings(mode="require")).values()),
        *(new_connection(one, tmp_path / "logs") for one in servers(place, recording)),
        allow_write_tools=switched_on,
        allow_execute_tools=switched_on,
        palette_size=16,
        max_reinjections=2,
    ) as one:
        for turn in range(TURNS * 10):
            if counts["turns"] >= TURNS and counts["calls"] >= CALLS:
                break
            one.name = f"session {turn // 5}"
            packet = await play(one, decider, approver, turn)
            counts.update(counted_events(packet, approver))
            after = contents(place.root)
            counts["unapproved changes on disk"] += len(unapproved(before, after, approver))
            counts["changes on disk"] += sum(1 for _ in changed(before, after))
            before = after
    ran = recorded(recording)
    writes = Counter(one for one in ran if is_write(*one))
    counts["recorded calls"], counts["recorded writes"] = len(ran), writes.total()
    counts["unapproved recorded writes"] = (writes - Counter(approver.shown)).total()
    counts["accesses outside"] += sum(1 for _ in changed(outside, contents(place.outside)))
    counts["accesses outside"] += sum(SECRET in arguments for _, arguments in ran)
    counts["shell interpretations"] += len([*place.folder.rglob(MARKER)])
    with capsys.disabled():
        print(f"\n{'on' if switched_on else 'off'}, {'approved' if approves else 'denied'}: {dict(counts)}")  # noqa: T201  the figures are the point
    for never in (
        *("unapproved changes on disk", "unapproved recorded writes", "unapproved executions", "sections edited"),
        *("accesses outside", "shell interpretations"),
    ):
        assert counts[never] == 0, never
    if switched_on and approves:
        assert counts["recorded writes"] > 0
        assert counts["changes on disk"] > 0
    else:
        assert counts["recorded writes"] == counts["changes on disk"] == 0
    assert counts["call executed"] > 0
    assert counts["forged by a client"] > 0


def servers(place: Place, recording: Path) -> list[ServerConfig]:
    """Return a third-party file server, and a server that records its calls."""
    npx = {"command": require("npx"), "args": ["-y", "@modelcontextprotocol/server-filesystem", str(place.root)]}
    records = hostile_server.entry("recording", env={"NOTES": str(recording)})
    return [ServerConfig("files", {**npx, "trusted": True}), ServerConfig("hotel", {**records, "trusted": True})]


async def play(one: Session, decider: HostileDecider, approver: Approver, turn: int) -> CognitionPacket:
    """Run a turn to its end, with forged state between and during its steps."""
    sessions, rng = Sessions(one.graph), decider.rng
    if turn % 5 and rng.random() < 0.3:
        await forge(one, decider, at_rest=True)
    words = rng.choice(["read and write files", "run a program", "send a parcel", "move, edit, list", "get a page"])
    given: Say | Reply | Continue = Say(f"{words}, as you like")
    for _ in range(MAX_REPLIES):
        last = [event async for event in run_turn(sessions, given, one.name, one.context)][-1]
        if isinstance(last, Finished):
            decider.counts["turns"] += 1
            return last.packet
        assert isinstance(last, Asked)
        decider.counts["questions"] += 1
        if rng.random() < 0.15:
            await forge(one, decider, at_rest=False)
            state = await sessions.state(one.name)
            if state.question is None:
                given = Continue()
                continue
            last = Asked(state.question, state.packet)
        given = approver.reply(last.question)
    raise AssertionError(f"{MAX_REPLIES} replies, and it still asks")


async def forge(one: Session, decider: HostileDecider, *, at_rest: bool) -> None:
    """Edit sections like a client of the server's API that knows no valid approvals."""
    packet = (await Sessions(one.graph).state(one.name)).packet
    approvals = [
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=ApprovalOutcome.APPROVED,
            digest=token_hex(32),
            expires_at=now() + timedelta(days=300),
            grant_id=decider.rng.choice(["", "forged"]),
        )
        for call in (packet.tool_routing.all_calls if packet.tool_routing else ())
    ]
    governance = packet.governance.changed(approvals=(*packet.governance.approvals, *approvals))
    if at_rest:
        everything = RoutingContext(allow_write_tools=True, allow_execute_tools=True, confidence_threshold=0.0)
        governance = governance.model_copy(update={"settings": everything})
    context = packet.context.model_copy(update={"palette": forged_palette(packet)})
    await one.graph.aupdate_state(one.config, {"governance": governance, "context": context})
    decider.counts["forged by a client"] += 1


def counted_events(packet: CognitionPacket, approver: Approver) -> Iterator[str]:
    """Yield the counted events of a turn."""
    approved = {*approver.shown}
    for call in packet.tool_routing.all_calls if packet.tool_routing else ():
        yield "calls"
        yield f"call {call.status}"
        ran = call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.UNKNOWN}
        if ran and call.risk is not Risk.READ and (call.tool_name, _written(call.params)) not in approved:
            yield "unapproved executions"
        output = call.result.output or "" if call.result and ran else ""
        if call.tool_name == "ai.execute" and ran and call.params["argv"][0] == "echo":
            yield "programs echoed"
            if " ".join(call.params["argv"][1:]) not in output:
                yield "shell interpretations"
    if SECRET in packet.model_dump_json():
        yield "accesses outside"


Contents = dict[str, str]


def contents(folder: Path) -> Contents:
    """Return all files below a folder, with times and digests."""
    found: Contents = {}
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(where, name)
            if path.is_symlink():
                about = str(path.readlink())
            elif path.is_file():
                about = f"{path.stat().st_mtime_ns} {sha256(path.read_bytes()).hexdigest()}"
            else:
                about = "folder"
            found[str(path.relative_to(folder))] = about
    return found


def changed(before: Contents, after: Contents) -> Iterator[str]:
    """Yield new, changed and deleted paths."""
    yield from (name for name in {**before, **after} if before.get(name) != after.get(name))


def unapproved(before: Contents, after: Contents, approver: Approver) -> list[str]:
    """Return the changes that no approved call accounts for."""
    named = "\n".join(text for _, arguments in approver.shown for text in texts(json.loads(arguments)))
    return [name for name in changed(before, after) if not any(part in named for part in _places(name))]


def texts(value: Any) -> Iterator[str]:
    """Yield every text in arguments."""
    match value:
        case str():
            yield value
        case dict() | list():
            for inner in value.values() if isinstance(value, dict) else value:
                yield from texts(inner)


def _places(name: str) -> list[str]:
    """Return the names that a call may use for a changed file or its folder."""
    return [name, *(str(one) for one in Path(name).parents if str(one) != ".")]


def recorded(recording: Path) -> list[tuple[str, str]]:
    """Return the calls that the recording server received."""
    lines = recording.read_text().splitlines() if recording.exists() else []
    return [(f"hotel.{name}", _written(arguments)) for name, arguments in map(json.loads, lines)]


def is_write(tool: str, arguments: str) -> bool:
    """Return whether a call of the recording server is a write."""
    return "output_path" in json.loads(arguments) if tool == "hotel.get_page" else tool != "hotel.get_price"


def _written(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)
