"""Damaged GGUF files, each in a process forked from this one: `python -m support.damaged_gguf FILE COUNT SEED`."""

import os
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from packetgate.models.llama.engine import LlamaEngine, Request
from packetgate.models.llama.trial import _try
from packetgate.state.errors import DecisionError, ModelError

NAMES = rb"general\.\w+|llama\.[\w.]+|tokenizer\.[\w.]+|(?:token_embd|blk\.0\.\w+|output_norm|output)\.weight|<0x\w\w>"


def damaged(whole: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield cut and changed copies, most of them changed near what the file says of itself."""
    chance = random.Random(seed)
    near = [at for name in re.finditer(NAMES, whole[:20_000]) for at in range(name.start(), name.end() + 24)]
    for _ in range(count):
        copy, at, word = bytearray(whole), chance.choice(near), chance.randbytes(8)
        match chance.randrange(6):
            case 0:
                del copy[chance.randrange(len(copy)) :]
            case 1:
                copy[at] ^= 1 << chance.randrange(8)
            case 2:
                copy[at : at + 4] = chance.choice((bytes(4), b"\xff" * 4))
            case 3:
                copy[at : at + 8] = word
            case 4:
                copy[at:at] = bytes(chance.randrange(1, 9))
            case 5:
                del copy[at : at + chance.randrange(1, 9)]
        yield bytes(copy)


def ended(work: Callable[[], None]) -> int:
    """Do the work in a fork of this process; return its exit status, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def use(path: str) -> None:
    """Load a file and talk to it, as a turn would."""
    try:
        engine = LlamaEngine(path, {"n_ctx": 512})
        for text in ("Hello", "Grüße: 你好 🙂 \x00\x7f"):
            chat = [{"role": "user", "content": text}]
            engine.submit(Request(chat, {"max_tokens": 3, "temperature": 0.7})).result()
    except (ModelError, DecisionError):
        return


def main(file: str, count: int, seed: int) -> None:
    """Print how many files the trial stops; end with status 1 where one passes it and breaks the process."""
    warnings.simplefilter("ignore")
    whole, path = Path(file).read_bytes(), f"{file}.damaged"
    stopped = broken = 0
    for at, copy in enumerate(damaged(whole, count, seed)):
        Path(path).write_bytes(copy)
        if ended(lambda: _try(path)):
            stopped += 1
        elif status := ended(lambda: use(path)):
            broken += 1
            sys.stdout.write(f"number {at} of seed {seed} ends with {status}\n")
            Path(f"{path}.{at}").write_bytes(copy)
    sys.stdout.write(f"{count} files: {stopped} stopped by the trial, {broken} break the process\n")
    sys.exit(broken > 0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
