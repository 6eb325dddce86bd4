"""The catalogue of stable codes: a message's wording may change, its code does not."""

from enum import StrEnum


class Code(StrEnum):
    """Code of an error or a refusal, shown in brackets after its message and as `code` in JSON."""

    CALL_REFUSED = "call-refused"
    CALL_TIMED_OUT = "call-timed-out"
    CONFIGURATION = "configuration"
    DECISION_UNUSABLE = "decision-unusable"
    INTERNAL = "internal"
    INPUT_UNUSABLE = "input-unusable"
    MODEL_UNAVAILABLE = "model-unavailable"
    NO_ANSWER = "no-answer"
    PACKET_UNREADABLE = "packet-unreadable"
    PACKET_VERSION = "packet-version"
    PERMISSION_WITHDRAWN = "permission-withdrawn"
    QUESTION_NOT_OPEN = "question-not-open"
    REQUEST_UNUSABLE = "request-unusable"
    SERVER_SESSION_UNKNOWN = "server-session-unknown"
    SERVER_UNAVAILABLE = "server-unavailable"
    SESSION_UNUSABLE = "session-unusable"
    TOOL_FAILED = "tool-failed"
    TOOLS_UNSUPPORTED = "tools-unsupported"
    WEIGHTS_UNUSABLE = "weights-unusable"
