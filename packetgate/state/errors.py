"""The errors of Packetgate's public interface."""

from pydantic import ValidationError

from packetgate.state.base import ErrorType, TokenUsage
from packetgate.state.codes import Code


class PacketgateError(Exception):
    """Base of all errors; the message names the cause and the fix.

    `code` is stable: programs and tests read the code, not the message. Each class has a default code. A `raise` may
    give a more specific code.
    """

    code = Code.INTERNAL

    def __init__(self, message: str, code: Code | None = None) -> None:
        super().__init__(message)
        self.code = code or type(self).code


class InputError(PacketgateError):
    """Input, a setting, a file, a model or a session cannot be used."""

    code = Code.INPUT_UNUSABLE


class RequestError(InputError):
    """A request, a reply, an attachment or an update of a packet cannot be used."""

    code = Code.REQUEST_UNUSABLE


class PacketError(InputError):
    """A packet cannot be read, or may not change in this way."""

    code = Code.PACKET_UNREADABLE


class PacketVersionError(PacketError):
    """A packet was written by another version of Packetgate."""

    code = Code.PACKET_VERSION


class ConfigError(InputError):
    """A configuration file or a setting is wrong."""

    code = Code.CONFIGURATION


class ModelError(InputError):
    """A model is unavailable: missing file, unknown name or unreachable endpoint."""

    code = Code.MODEL_UNAVAILABLE


class SessionError(InputError):
    """A session has nothing to resume, or still waits for an answer."""

    code = Code.SESSION_UNUSABLE


class WeightsError(PacketgateError):
    """Weights that are shipped with Packetgate are missing or broken."""

    code = Code.WEIGHTS_UNUSABLE


class DecisionError(PacketgateError):
    """A model's answer could not be used as a decision."""

    code = Code.DECISION_UNUSABLE

    def __init__(self, message: str, usage: TokenUsage | None = None, *, code: Code | None = None) -> None:
        super().__init__(message, code)
        self.usage = usage or TokenUsage()
        """Tokens of the failed attempts."""


class UnansweredError(DecisionError):
    """The model was asked, and did not answer: it is unreachable, refused the request, or raised an exception."""

    code = Code.MODEL_UNAVAILABLE


class NotAskedError(DecisionError):
    """The model was not asked, because it was unreachable earlier in the turn."""


class ToolCallError(PacketgateError):
    """A tool call did not succeed."""

    code = Code.TOOL_FAILED
    error_type = ErrorType.TOOL_ERROR

    def __init__(self, message: str, server_part: str = "", *, code: Code | None = None) -> None:
        super().__init__(message, code)
        self.server_part = server_part
        """The part of the message that a tool or server wrote."""


class CallRefusedError(ToolCallError):
    """A call may not run."""

    code = Code.CALL_REFUSED
    error_type = ErrorType.REFUSED


class ServerError(ToolCallError):
    """The tool's server is unavailable, or refused the call: the call did not run, except for a `LostCallError`."""

    code = Code.SERVER_UNAVAILABLE
    error_type = ErrorType.UNAVAILABLE

    def __init__(
        self, message: str, server_part: str = "", *, is_disconnected: bool = False, code: Code | None = None
    ) -> None:
        super().__init__(message, server_part, code=code)
        self.is_disconnected = is_disconnected
        """Whether the connection ended, so that a read may be sent again."""


class SessionRefusedError(ServerError):
    """The server does not know the session, so the call did not run. The call can be sent again in a new session."""

    code = Code.SERVER_SESSION_UNKNOWN


class LostCallError(ServerError):
    """The call was sent, but no answer arrived: the call may have run."""

    code = Code.NO_ANSWER
    error_type = ErrorType.NO_ANSWER


class TimedOutCallError(LostCallError):
    """The call was sent, but no answer arrived in time: the call may have run."""

    code = Code.CALL_TIMED_OUT
    error_type = ErrorType.TIMEOUT


def first_problem(error: ValidationError, within: str = "") -> str:
    """Return the first problem of a validation, after the path of its field."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join([*filter(None, [within]), *map(str, first["loc"])])
    return f"{where or 'value'}: {first['msg']}"
