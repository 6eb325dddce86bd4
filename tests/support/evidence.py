"""Calls traced to user messages and tool output."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import HumanMessage

from packetgate.deciders.packets import facts_of
from packetgate.gate.provenance.flagging import origins_of
from packetgate.gate.provenance.sources import SourceTexts
from packetgate.state.origins import Origin
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult, ToolRouting
from packetgate.state.sections import Content
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec


def earlier_call(tool: str, output: Any, /, **params: Any) -> ToolCall:
    """Return an executed read with a text or JSON result."""
    text = output if isinstance(output, str) else json.dumps(output)
    return ToolCall(tool_name=tool, params=params, risk=Risk.READ, result=ToolResult(success=True, output=text))


def sources_for(request_text: str, *calls: ToolCall) -> SourceTexts:
    """Return the sources of a turn with this request and these calls, oldest first."""
    packet = CognitionPacket(
        content=Content(original_prompt=request_text),
        messages=[HumanMessage(request_text)],
        tool_routing=ToolRouting(past_calls=calls),
    )
    return facts_of(packet, Catalogue()).sources


def reasons(request_text: str, spec: ToolSpec, /, *calls: ToolCall, **params: Any) -> str:
    """Return the reasons why arguments of a call are flagged; empty if none is flagged."""
    origins = origins_of(params, spec, sources_for(request_text, *calls))
    return "; ".join(origin.why for origin in origins.values() if origin.is_flagged)


def traced(
    params: Mapping[str, Any], spec: ToolSpec, request_text: str, outputs: Iterable[tuple[str, Any]]
) -> dict[str, Origin]:
    """Return the origins of arguments, given the outputs of earlier tools, newest first."""
    return origins_of(params, spec, sources_for(request_text, *(earlier_call(*one) for one in reversed([*outputs]))))
