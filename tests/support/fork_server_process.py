"""The process of `fork_server.py`, which gets its socket and the path of the command, and forks for each request."""

import gc
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import packetgate

IMPORTED_IN_FUNCTIONS = """
aiosqlite anyio._backends._asyncio fastmcp.server.context griffe langgraph.store.sqlite.aio prompt_toolkit.shortcuts
""".split()


def preload() -> None:
    """Import every module of Packetgate except the server's graph, and all modules that functions import."""
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # the command also sets it before its imports
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # no threads before a fork
    for module in walk_packages(packetgate.__path__, "packetgate."):
        if module.name != "packetgate.graph.app":
            import_module(module.name)
    for name in IMPORTED_IN_FUNCTIONS:
        import_module(name)
    _load_weights()
    gc.freeze()


def _load_weights() -> None:
    """Load what the first turn of a process loads and caches. An ONNX session with one thread survives a fork."""
    from packetgate.deciders.language.evidence import load_weights
    from packetgate.reflex.judge import judge
    from packetgate.reflex.meaning.encoder import encoded_text, sentence_encoder, static_encoder
    from packetgate.reflex.signals import load_call_weights, load_request_classifier, load_signal_weights
    from packetgate.reflex.values.features import load_filling_trees
    from packetgate.toolsets.servers.opening import builtin_servers

    for load in (
        load_weights,
        load_request_classifier,
        load_call_weights,
        load_signal_weights,
        load_filling_trees,
    ):
        load()
    judge._THREADS = 1
    judge.load_encoder(judge.JUDGE_WEIGHTS)
    static_encoder().vectors(["a"])
    specs = [spec for server in builtin_servers(Path.cwd()).values() for spec in server.tool_specs()]
    sentence_encoder().vectors([encoded_text(spec) for spec in specs])


def serve(channel: socket.socket) -> None:
    """Fork for each request until the peer closes the socket; return in the forked process, which runs the command."""
    while True:
        length, handed, _, _ = socket.recv_fds(channel, 8, 4)
        if not length:
            os._exit(0)
        request = json.loads(_read(channel, int.from_bytes(length, "big")))
        if not os.fork():
            channel.close()
            _stay_behind(*handed)
            _become(request, *handed[1:])
            return
        for one in handed:
            os.close(one)


def _read(channel: socket.socket, length: int) -> bytes:
    read = b""
    while len(read) < length:
        read += channel.recv(length - len(read))
    return read


def _stay_behind(report: int, *others: int) -> None:
    """Fork again: the parent reports the child's process id and exit status, and the child continues."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        for one in others:
            os.close(one)
        os.write(report, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    os.close(report)


def _become(request: dict[str, Any], *streams: int) -> None:
    for number, given in enumerate(streams):
        os.dup2(given, number)
    for one in streams:
        os.close(one)
    if request["terminal"]:
        os.login_tty(os.dup(0))
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv[1:] = request["args"]
    if path := os.environ.get("PYTHONPATH"):  # a command that is not forked also reads PYTHONPATH
        sys.path[1:1] = path.split(os.pathsep)
        with suppress(ModuleNotFoundError):
            import_module("sitecustomize")


if __name__ == "__main__":
    channel = socket.socket(fileno=int(sys.argv[1]))
    sys.argv[0] = sys.argv[2]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the intermediate processes
    serve(channel)
    from packetgate.connectors.command_line import main

    main()
