"""A stand-in of Ollama: its own API for models, and OpenAI's protocol beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from support.scripted_openai import ScriptedOpenAI, serve_scripted_openai


@dataclass
class Ollama:
    """The server as a test sees it."""

    openai: ScriptedOpenAI
    sizes: dict[str, int] = field(default_factory=dict)
    """The models that it has, and their bytes."""
    embedding: set[str] = field(default_factory=set)
    """Those of them that only embed."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """The headers of all requests to its own API."""

    @property
    def host(self) -> str:
        """What `OLLAMA_HOST` is set to."""
        return self.openai.base_url.removeprefix("http://").removesuffix("/v1")

    def has(self, **sizes: int) -> None:
        """Give it models, `_` in place of `:`."""
        self.sizes = {name.replace("_", ":"): size for name, size in sizes.items()}
        self.openai.models = [*self.sizes]

    async def tags(self, request: Request) -> JSONResponse:
        self.headers.append(dict(request.headers))
        return JSONResponse({"models": [{"name": name, "size": size} for name, size in self.sizes.items()]})

    async def show(self, request: Request) -> JSONResponse:
        self.headers.append(dict(request.headers))
        name = (await request.json())["model"]
        return JSONResponse({"capabilities": ["embedding" if name in self.embedding else "completion"]})


@contextmanager
def serve_ollama() -> Iterator[Ollama]:
    """Run it on a free loopback port."""
    made: list[Ollama] = []

    async def tags(request: Request) -> JSONResponse:
        return await made[0].tags(request)

    async def show(request: Request) -> JSONResponse:
        return await made[0].show(request)

    with serve_scripted_openai([Route("/api/tags", tags), Route("/api/show", show, methods=["POST"])]) as scripted:
        made.append(Ollama(scripted))
        yield made[0]
