"""Calls traced to user messages and tool output."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import HumanMessage

from packetgate.state.origins import Origin
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult, ToolRouting
from packetgate.state.sections import Content
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.provenance.sources import SourceTexts, source_texts
from packetgate.tools.spec.tool_spec import ToolSpec


def earlier(tool: str, output: Any, /, **params: Any) -> ToolCall:
    """Return an executed read with a text or JSON result."""
    text = output if isinstance(output, str) else json.dumps(output)
    return ToolCall(tool_name=tool, params=params, risk=Risk.READ, result=ToolResult(success=True, output=text))


def known(said: str, *calls: ToolCall) -> SourceTexts:
    """Return the evidence of a turn with these user words and calls, oldest first."""
    return source_texts(
        CognitionPacket(
            content=Content(original_prompt=said),
            messages=[HumanMessage(said)],
            tool_routing=ToolRouting(past_calls=calls),
        )
    )


def traced(
    params: Mapping[str, Any], spec: ToolSpec, said: str, outputs: Iterable[tuple[str, Any]]
) -> dict[str, Origin]:
    """Return the origins of arguments, given the outputs of earlier tools, newest first."""
    return origins_of(params, spec, known(said, *(earlier(*one) for one in reversed([*outputs]))))
