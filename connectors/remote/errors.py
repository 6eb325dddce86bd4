"""What goes wrong with a LangGraph-API server, said in this project's own errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError

from httpx import ConnectError, ConnectTimeout, HTTPError
from langgraph.pregel.remote import RemoteException
from langgraph_sdk.errors import APIStatusError, AuthenticationError, PermissionDeniedError

from state import errors
from state.errors import ConfigError, PacketgateError

KEY = "LANGGRAPH_API_KEY"
"""The environment variable with the key that a server may ask for."""


@contextmanager
def translated_errors(url: str) -> Iterator[None]:
    """Say of what went wrong on the way to the server, or there, what it is.

    Raises:
        ConfigError: nobody can be reached, nobody is let in, or what is asked for is not there.
        PacketgateError: as a run on the server raised it, or that the server went away.
    """
    try:
        yield
    except RemoteException as error:
        raise _as_raised(error) from error
    except (AuthenticationError, PermissionDeniedError) as error:
        raise ConfigError(
            f"{url}: the server lets nobody in with this key, or without one ({_refusal(error)}): set {KEY}"
        ) from error
    except APIStatusError as error:
        raise ConfigError(f"{url}: the server refuses: {_refusal(error)}") from error
    except (ConnectError, ConnectTimeout) as error:
        raise ConfigError(
            f"{url}: no LangGraph-API server can be reached there ({type(error).__name__}): start one, "
            "for example with `make studio`, or leave the address out"
        ) from error
    except HTTPError as error:
        raise PacketgateError(
            f"{url}: the server went away ({type(error).__name__}): what it had done by then is kept there, "
            "and the turn can be continued once it is back"
        ) from error
    except JSONDecodeError as error:
        raise ConfigError(f"{url}: what answers there is no LangGraph-API server: it does not speak JSON") from error


def _as_raised(error: RemoteException) -> PacketgateError:
    """Return the error that a run on the server ended with, as its own class where it is one of ours."""
    data = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    name, message = str(data.get("error", "Exception")), str(data.get("message", error))
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, PacketgateError):
        return known(message)
    return PacketgateError(f"the turn broke on the server: {name}: {message}; its log says more")


def _refusal(error: APIStatusError) -> str:
    """Return status and reason in one line: a body may be JSON of any shape, a web page, or nothing."""
    reason = " ".join(error.message.split())
    status = str(error.status_code)
    return reason[:300] if reason.startswith(status) else f"{status} {reason}"[:300]
