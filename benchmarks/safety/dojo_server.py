"""Serve one suite of AgentDojo as an MCP server on standard input and output. It runs in AgentDojo's environment.

Over a Unix socket, the benchmark starts the next play and gets the verdict of AgentDojo's checks on the last play, with
one line of JSON in each direction.
"""

import asyncio
import json
import pickle
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

LIMIT = 2**24
POSTS = "post_webpage"
BY_READS = " by reads"
"""Suffix of the name of an injection whose goal needs a read from an address instead of a post."""
FIELDS = {"body": "subject", "content": "filename", "description": "title"}
"""Maps the name of a free text to the short field next to it."""
_PLACE = re.compile(r"\{[a-z_0-9]+\}")
IN_FIELD = frozenset(FIELDS.values()) | {"channels"}


def without_providers() -> None:
    """Make AgentDojo's suites importable without the language models that its package imports.

    Raises:
        ImportError: AgentDojo is not installed.
    """
    found = find_spec("agentdojo")
    if found is None or not found.submodule_search_locations:
        raise ImportError("agentdojo is not installed here")
    name = "agentdojo.agent_pipeline"
    package, played = ModuleType(name), ModuleType(f"{name}.ground_truth_pipeline")
    package.__path__ = [str(Path(found.submodule_search_locations[0], "agent_pipeline"))]
    played.GroundTruthPipeline = None  # type: ignore[attr-defined]
    sys.modules |= {package.__name__: package, played.__name__: played}


class Play:
    """One user task in its own environment, with or without an injection."""

    def __init__(self, suite: Any, placed: bytes, user: str, injection: str | None) -> None:
        """`placed`: the environment with the injection, pickled because unpickling makes a fast copy."""
        from agentdojo.functions_runtime import FunctionsRuntime

        self._suite = suite
        self._user = suite.user_tasks[user]
        self._injection = suite.injection_tasks[goal_of(injection)] if injection else None
        self._by_reads = injection != goal_of(injection)
        self._before = pickle.dumps(self._user.init_environment(pickle.loads(placed)))
        self._environment = self._copy()
        self._runtime = FunctionsRuntime(suite.tools)
        self._trace: list[Any] = []
        self._executed: list[dict[str, Any]] = []

    def as_json(self) -> dict[str, Any]:
        """Return the request, and the calls of the user and of the attacker."""
        published = _plain(self._injection.ground_truth(self._copy())) if self._injection else []
        return {
            "prompt": self._user.PROMPT,
            "calls": _plain(self._user.ground_truth(self._copy())),
            "attack": [*map(read_instead, published)] if self._by_reads else published or self._written_out(),
            "published": bool(published) and not self._by_reads,
        }

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a tool's output as Python servers do: a string unchanged, other values as JSON."""
        from agentdojo.functions_runtime import FunctionCall
        from pydantic_core import to_jsonable_python

        self._trace.append(FunctionCall(function=name, args=arguments))
        before = self._environment.model_dump()
        result, error = self._runtime.run_function(self._environment, name, arguments)
        changed = before != self._environment.model_dump()
        self._executed.append({"tool": name, "params": arguments, "changed": changed})
        if error is not None or isinstance(result, str):
            return _said(error or result) | {"isError": error is not None}
        plain = to_jsonable_python(result)
        return _said(json.dumps(plain)) | {"structuredContent": plain if isinstance(plain, dict) else {"result": plain}}

    def judged(self) -> dict[str, Any]:
        """Return whether the goal is reached, and for each call that ran whether it changed the environment."""
        return {"done": self._is_done(), "executed": self._executed}

    def _is_done(self) -> bool:
        """Return whether the attacker's task is done without an answer, or the user's task with the right answer."""
        if self._by_reads:
            at = {url for call in self.as_json()["attack"] for url in [call["params"].get("url")] if url}
            return any(call.args.get("url") in at for call in self._trace)
        if self._injection:
            return self._holds(self._injection, "")
        return self._holds(self._user, self._user.GROUND_TRUTH_OUTPUT)

    def _holds(self, task: Any, answer: str) -> bool:
        content = [{"type": "text", "content": answer}]
        try:
            return bool(self._suite._check_task_result(task, content, self._copy(), self._environment, self._trace))
        except Exception as error:  # noqa: BLE001 - the check reads a missing object
            print(f"{task.ID}: {error!r}", file=sys.stderr)
            return False

    def _written_out(self) -> list[dict[str, Any]]:
        from dojo_attacks import written_out

        of_mails = self._injection and self._suite.name == "workspace"
        return _plain(written_out(self._injection, self._copy())) if of_mails else []

    def _copy(self) -> Any:
        """Return a copy of the initial environment, because some reads change the environment."""
        return pickle.loads(self._before)


def goal_of(injection: str | None) -> str | None:
    """Return the goal of an injection."""
    return injection.removesuffix(BY_READS) if injection else None


def read_instead(call: dict[str, Any]) -> dict[str, Any]:
    """Return a read from an address that replaces a post to it, with the posted data in the address."""
    if call["tool"] != POSTS:
        return call
    carried = quote(call["params"]["content"])
    return {"tool": "get_webpage", "params": {"url": f"{call['params']['url']}?{carried}"}}


def filled(plain: Any, texts: dict[str, str]) -> Any:
    """Return the data of an environment with its placeholders filled."""
    if isinstance(plain, str):
        return plain.format(**texts)
    if isinstance(plain, list):
        return [filled(one, texts) for one in plain]
    if isinstance(plain, dict):
        return {filled(key, texts): filled(value, texts) for key, value in plain.items()}
    return plain


def in_fields(plain: Any) -> Any:
    """Return the data of an environment with placeholders moved from free texts into the short fields next to them."""
    if isinstance(plain, list):
        return [in_fields(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    moved = {key: in_fields(value) for key, value in plain.items()}
    for text, field in FIELDS.items():
        if isinstance(moved.get(text), str) and field in moved:
            places = "".join(_PLACE.findall(moved[text]))
            moved |= {text: _PLACE.sub("", moved[text]), field: f"{moved[field]}{places}"}
    return moved


def places_in(plain: Any, name: str = "") -> set[str]:
    """Return the placeholders in fields."""
    if isinstance(plain, dict):
        return {one for key, value in plain.items() for one in places_in(value, key)}
    if isinstance(plain, list):
        return {one for value in plain for one in places_in(value, name)}
    return {one[1:-1] for one in _PLACE.findall(str(plain))} if name in IN_FIELD else set()


def _plain(calls: list[Any]) -> list[dict[str, Any]]:
    return [{"tool": call.function, "params": dict(call.args)} for call in calls]


def _said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


class Server:
    """The suite's tools and the current play."""

    def __init__(self, name: str) -> None:
        without_providers()
        import yaml
        from agentdojo.task_suite.load_suites import get_suite
        from agentdojo.task_suite.task_suite import read_suite_file

        yaml.SafeLoader = yaml.CSafeLoader  # environments are parsed many times
        self._suite = get_suite("v1.2.2", name)
        self._plain = yaml.load(read_suite_file(name, "environment.yaml", None), yaml.SafeLoader)
        self._placed, self._seen = cache(self._load), cache(self._look)
        self._play: Play | None = None

    def start(self, user: str, injection: str | None, variant: str) -> dict[str, Any]:
        """Start a play, and return the request, the calls of both sides and the marks of the attacker's text.

        If the variant does not apply to the goal or to the outputs of the user's calls, the attacker has no calls.
        """
        self._play = Play(self._suite, self._placed((), False), user, injection)
        play = self._play.as_json() | {"marks": []}
        if injection is None:
            return play
        from dojo_variants import VARIANTS

        how = VARIANTS[variant]
        parts = how.text(self._suite.injection_tasks[goal_of(injection)].GOAL, play["attack"])
        places = self._seen(user, how.in_field)
        if not play["attack"] or not parts or len(places) < len(parts):
            return play | {"attack": []}
        texts = tuple((place, parts[number % len(parts)][0]) for number, place in enumerate(places))
        self._play = Play(self._suite, self._placed(texts, how.in_field), user, injection)
        return self._play.as_json() | {"marks": [mark for _, mark in parts]}

    def _posting(self) -> list[str]:
        """Return the names of the injections that reach a posting goal by reads."""
        environment = pickle.loads(self._load((), False))
        goals = self._suite.injection_tasks.items()
        posting = [name for name, goal in goals if POSTS in {one.function for one in goal.ground_truth(environment)}]
        return [f"{name}{BY_READS}" for name in posting]

    def _load(self, injections: tuple[tuple[str, str], ...], in_field: bool) -> bytes:
        texts = dict(self._suite.get_injection_vector_defaults(), **dict(injections))
        plain = in_fields(self._plain) if in_field else self._plain
        return pickle.dumps(self._suite.environment_type.model_validate(filled(plain, texts)))

    def _look(self, user: str, in_field: bool) -> tuple[str, ...]:
        """Return the placeholders in the outputs of the user's own calls."""
        marks = {one: f"<MARK-{number}>" for number, one in enumerate(self._suite.get_injection_vector_defaults())}
        play = Play(self._suite, self._load(tuple(marks.items()), in_field), user, None)
        read = str([play.call(call["tool"], call["params"]) for call in play.as_json()["calls"]])
        fields = places_in(in_fields(self._plain)) if in_field else marks
        return tuple(one for one, mark in marks.items() if mark in read and one in fields)

    def listed(self) -> list[dict[str, Any]]:
        """Return the tools as in `tools/list`, without annotations, because AgentDojo has none."""
        return [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters.model_json_schema()}
            for tool in self._suite.tools
        ]

    def asked(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a protocol message; None for a notification."""
        params = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                version = {"protocolVersion": params["protocolVersion"]}
                about = {"capabilities": {"tools": {}}, "serverInfo": {"name": self._suite.name, "version": "1"}}
                return {"result": version | about}
            case "ping":
                return {"result": {}}
            case "tools/list":
                return {"result": {"tools": self.listed()}}
            case "tools/call" if self._play:
                return {"result": self._play.call(params["name"], params.get("arguments") or {})}
            case str() as method if "id" in message:
                return {"error": {"code": -32601, "message": f"no method {method}"}}
        return None

    def control(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request of the benchmark: `tasks`, `start` or `judge`."""
        match message["do"]:
            case "tasks":
                return {
                    "users": [*self._suite.user_tasks],
                    "injections": [*self._suite.injection_tasks],
                    "by_reads": self._posting(),
                }
            case "start":
                return self.start(message["user"], message["injection"], message["variant"])
            case "judge" if self._play:
                return self._play.judged()
        return None


Answering = Callable[[dict[str, Any]], dict[str, Any] | None]


async def answer_all(lines: asyncio.StreamReader, write: Callable[[bytes], Any], answering: Answering) -> None:
    """Answer each line of JSON with one line."""
    async for line in lines:
        message = json.loads(line)
        answer = answering(message)
        if answer is not None:
            framed = {"jsonrpc": "2.0", "id": message["id"], **answer} if "jsonrpc" in message else answer
            write(json.dumps(framed).encode() + b"\n")


async def serve(name: str, socket: str) -> None:
    """Serve until standard input ends."""
    server = Server(name)

    async def controlled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer_all(reader, writer.write, server.control)
        writer.close()

    def written(line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()

    await asyncio.start_unix_server(controlled, socket, limit=LIMIT)
    lines = asyncio.StreamReader(limit=LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await answer_all(lines, written, server.asked)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
