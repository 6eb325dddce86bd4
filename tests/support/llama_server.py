"""llama-cpp-python's own server, the real one, on a loopback port."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import uvicorn


@contextmanager
def serve_llama(models: Mapping[str, Path], **settings: object) -> Iterator[str]:
    """Serve GGUF files under these names; yield the base URL. At most once in a process: the server keeps globals.

    A name that ends in `-without-logits` is loaded so that its logprobs cannot be had.
    """
    from llama_cpp.server.app import create_app
    from llama_cpp.server.settings import ModelSettings, ServerSettings

    given = [
        ModelSettings(
            model=str(path),
            model_alias=name,
            n_ctx=1024,
            logits_all=not name.endswith("-without-logits"),
            verbose=False,
            **settings,
        )
        for name, path in models.items()
    ]
    listener = socket.create_server(("127.0.0.1", 0))  # listens already: nobody need wait for uvicorn
    app = create_app(server_settings=ServerSettings(), model_settings=given)
    config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
