"""Every name that telemetry uses: OpenTelemetry's conventions for GenAI and MCP, and our own below `packetgate.`.

The conventions are https://github.com/open-telemetry/semantic-conventions-genai, in development as of 2026.
"""

SCOPE = "packetgate"

# attributes of GenAI and MCP
CONVERSATION_ID = "gen_ai.conversation.id"
OPERATION_NAME = "gen_ai.operation.name"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
REQUEST_MODEL = "gen_ai.request.model"
PROVIDER = "gen_ai.provider.name"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT = "gen_ai.tool.call.result"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
TOKENS_TYPE = "gen_ai.token.type"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"
MCP_METHOD = "mcp.method.name"
TOOLS_CALL = "tools/call"
ERROR_TYPE = "error.type"
TOOL_ERROR = "tool_error"
"""The `error.type` of a call that the server answered with an error."""

# events and metrics of GenAI and MCP
EVALUATION_RESULT = "gen_ai.evaluation.result"
TOKENS_USED = "gen_ai.client.token.usage"
OPERATION_DURATION = "gen_ai.client.operation.duration"
EXECUTE_TOOL_DURATION = "gen_ai.execute_tool.duration"
MCP_DURATION = "mcp.client.operation.duration"

# our own attributes
STAGE = "packetgate.stage"
PACKET_ID = "packetgate.packet.id"
MODE = "packetgate.mode"
FALLBACK = "packetgate.fallback"
LOADED = "packetgate.tools.loaded"
ADDED = "packetgate.tools.added"
REMOVED = "packetgate.tools.removed"
SHIFTED = "packetgate.context.shifted"
USED = "packetgate.tools.used"
MISSED = "packetgate.tools.missed"
ESCALATED = "packetgate.tools.escalated"
ESCALATION = "packetgate.escalation"
CORRECTION = "packetgate.correction"
REINJECTIONS = "packetgate.reinjections"
VIOLATIONS = "packetgate.violations"
ERRORS = "packetgate.errors"
CALLS = "packetgate.calls."
"""Followed by a status."""
CALL_STATUS = "packetgate.call.status"
CALL_RISK = "packetgate.call.risk"
DRY_RUN = "packetgate.call.dry_run"

# our own metrics
STAGE_DURATION = "packetgate.stage.duration"
MISSES = "packetgate.misses"
FALLBACKS = "packetgate.fallbacks"
ESCALATIONS = "packetgate.escalations"
CORRECTIONS = "packetgate.corrections"

# bucket boundaries that the conventions ask for, in seconds and in tokens
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
MCP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
TOKENS = tuple(4**power for power in range(14))

CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that allows content, which is arguments, results and explanations, on spans."""
CAPTURING = frozenset(("true", "1", "span_only", "span_and_event"))
