"""The child process of `try_file`: it loads a GGUF file and has it answer."""

import sys
from contextlib import suppress

from packetgate.models.llama.engine import LlamaEngine, Request
from packetgate.models.schemas import AnswerForm, obj
from packetgate.state.errors import DecisionError, ModelError

EVERY_BYTE = "".join(map(chr, (*range(0x800), *range(0x800, 0xD800, 0x40), *range(0xE000, 0x110000, 0x40))))
"""A text of all bytes that UTF-8 has, mostly in rare characters."""

if __name__ == "__main__":
    with suppress(ModelError, DecisionError):
        engine = LlamaEngine(sys.argv[1], {"n_ctx": 256, "n_gpu_layers": 0, "repack": int(sys.argv[2])})
        engine.weights.tokenize(EVERY_BYTE, special=False)
        form = AnswerForm("trial", obj(works={"type": "boolean"}))
        chat = [{"role": "user", "content": "Hello"}]
        engine.submit(Request(chat, {"max_tokens": 2, "temperature": 0.0}, form)).result()
