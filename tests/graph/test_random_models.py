"""Turns decided by random weights, writes switched on, nobody to ask: only what was approved may run."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from fastmcp.tools import Tool
from mcp_types import ToolAnnotations
from support.gguf_model import write_tiny_gguf
from support.graphs import run_once
from support.palettes import NIGHTLY, PALETTES, palettes
from support.prompt_phrases import prompt_phrases

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders, IntentDecision, IntentDetector
from packetgate.models.llama.model import LlamaCppModel
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.checks.dialects import normalize_schema
from packetgate.tools.checks.validation import check_params
from packetgate.tools.servers.connection import Connection
from packetgate.tools.spec.tool_spec import ToolSpec

PARTS = 8 if NIGHTLY else 2
FOND_OF_CALLING = (13, 23, 64, 59, 47, 30, 39, 29)
"""Seeds of models that called often on one machine; on another one the same weights round, and speak, differently."""
PATIENCE = 5
"""Turns without a call after which a model gives way to the next."""
CONTEXT: dict[str, Any] = {
    "allow_write_tools": True,
    "allow_execute_tools": True,
    "on_low_confidence": "ask",
    "selection_temperature": 1.0,
    "review_temperature": 1.0,
    "max_reinjections": 1,
    "selection_max_tokens": 250,
}

Ran = list[tuple[str, dict[str, Any]]]


class Recorder(Tool):
    """A tool with exactly the schema given. It writes down what it was called with."""

    record: Callable[[tuple[str, dict[str, Any]]], None]

    async def run(self, arguments: dict[str, Any]) -> Any:
        self.record((self.name, arguments))
        return self.convert_result("ran")


def serve(tools: list[ToolSpec], ran: Ran) -> Connection:
    """Return a connection to a server with these tools; every other one is said to only read."""
    server: FastMCP[Any] = FastMCP("any")
    for number, tool in enumerate(tools):
        server.add_tool(
            Recorder(
                name=tool.upstream_name,
                description=tool.full,
                parameters=tool.input_schema,
                annotations=ToolAnnotations(read_only_hint=number % 2 == 0),
                record=ran.append,
            )
        )
    return Connection("any", lambda: FastMCPTransport(server), trusted=True)


@dataclass(frozen=True)
class Insistent:
    """Asks the model, and then wants a tool once, whatever it says: otherwise most turns would end here."""

    model: IntentDetector

    async def __call__(self, packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
        decision = await self.model(packet, toolbox, context)
        return decision.model_copy(update={"needs_tool": packet.tool_routing is None})


def seeds(part: int) -> Iterator[int]:
    """Yield seeds of models, first those that are likely to call; each part begins with another one."""
    yield from FOND_OF_CALLING[part:] + FOND_OF_CALLING[:part]
    yield from range(100 + part, 1_000_000, PARTS)


def deciders_of(seed: int, folder: Path) -> Deciders:
    """Return deciders by a model with random weights."""
    file = write_tiny_gguf(folder / f"random-{seed}.gguf", seed=seed, terse=True, phrases=prompt_phrases())
    loaded = LlamaCppModel.load(str(file), {"n_ctx": 3072, "n_threads": 1, "seed": seed})

    async def model() -> LlamaCppModel:
        return loaded

    deciders = language_deciders(model, model)
    return replace(deciders, intent=Insistent(deciders.intent))


@pytest.mark.parametrize("part", range(PARTS))
async def test_nothing_runs_that_was_not_approved(
    part: int, llama_cpp_installed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    models = seeds(part)
    deciders, counts, idle = deciders_of(next(models), tmp_path), Counter[str](), 0
    for tools in list(palettes())[part::PARTS]:
        if idle == PATIENCE:
            deciders, idle = deciders_of(next(models), tmp_path), 0
        ran: Ran = []
        packet = await run_once(deciders, "Please do what you can", serve(tools, ran), **CONTEXT)
        seen = Counter(judged(packet, tools, ran))
        idle = 0 if seen["calls"] else idle + 1
        counts += seen
    with capsys.disabled():
        print(f"\npart {part}: {dict(counts)}")  # noqa: T201  the figures are the point
    assert counts["turns"] == PALETTES // PARTS
    assert counts["calls"] > 5


def judged(packet: CognitionPacket, tools: list[ToolSpec], ran: Ran) -> Iterator[str]:
    """Check one turn, and yield what is to be counted."""
    yield "turns"
    read = ((tool, normalize_schema(tool.input_schema)[0]) for tool in tools)
    known = {f"any.{tool.upstream_name}": replace(tool, input_schema=schema) for tool, schema in read}
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    allowed = []
    for call in calls:
        yield "calls"
        yield f"call {call.status}"
        assert call.tool_name in known
        assert check_params(known[call.tool_name], call.params) == []
        if call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}:
            assert call.risk is Risk.READ
            assert call.review_confidence >= 0.7
            earnest = {"dry_run": False} if "dry_run" in known[call.tool_name].parameters else {}
            allowed.append((call.tool_name.removeprefix("any."), call.params | earnest))
    assert sorted(map(str, ran)) == sorted(map(str, allowed))
    yield from (f"fallback in {entry.step}" for entry in packet.reasoning.reflection_log if entry.is_fallback)
    assert packet.messages[-1].text
