"""`packetgate model pull`, with a stand-in for the hub."""

import fcntl
import hashlib
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import CommandLine, Outcome
from support.hub import Hub, left_in, serve_hub
from support.scripted_openai import free_port

from packetgate.connectors.terminal.pulling import listed_models
from packetgate.graph.composition import model_pool
from packetgate.graph.records import evidence_version
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.tools.calibration import Calibration, save_calibration

CHUNK = 10 << 20
"""Bytes that the hub's library writes at once. A partial download has a multiple of this size."""


@pytest.fixture
def hub(tiny_gguf: Path) -> Iterator[Hub]:
    """The hub with a model that gives random answers and has the size of several chunks."""
    with serve_hub(tiny_gguf.read_bytes() + random.Random(1).randbytes(2 * CHUNK)) as hub:
        yield hub


def pull(cli: CommandLine, hub: Hub, *name: str, **variables: str) -> Outcome:
    return cli.run("model", "pull", *(name or (hub.name,)), HF_ENDPOINT=hub.endpoint, **variables)


def model_in(folder: Path) -> Path:
    """Return the file that packetgate.toml names."""
    name: str = tomllib.loads((folder / "packetgate.toml").read_text())["models"]["lite"]["model"]
    return Path(name.removeprefix("llamacpp:"))


def test_a_model_is_downloaded_set_and_tried(cli: CommandLine, hub: Hub) -> None:
    (cli.folder / "token").write_text("stored by another program")
    done = pull(cli, hub, HF_TOKEN="hf_secret", HF_HOME=str(cli.folder))
    assert done.status == 0, done.err
    assert model_in(cli.folder).read_bytes() == hub.content
    assert "the checksum (SHA-256) is right" in done.out
    assert "set the model to llamacpp:" in done.out
    assert "select_tool" in done.out, "the request that tries it"
    assert [line.split(" %")[0] for line in done.err.splitlines() if " %: " in line][-1] == "100"
    assert {one.get("authorization") for one in hub.sent("GET", "/owner")} == {"Bearer hf_secret"}
    assert [one.get("authorization") for one in hub.sent("GET", "/storage")] == [None]
    asked = len(hub.requests)
    again = pull(cli, hub)
    assert "is already here" in again.out
    assert len(hub.requests) == asked


def test_a_token_is_taken_from_the_environment_alone(cli: CommandLine, hub: Hub) -> None:
    (cli.folder / "token").write_text("hf_stored")
    hub.etag = "0" * 64
    pull(cli, hub, HF_HOME=str(cli.folder))
    assert not [headers for _, _, headers in hub.requests if "authorization" in headers]


def test_an_interrupted_download_continues(cli: CommandLine, hub: Hub) -> None:
    hub.cut = CHUNK + 1000
    broken = pull(cli, hub)
    assert broken.status == 2
    assert "503" in broken.err
    assert not (cli.folder / "packetgate.toml").exists()
    assert [name.endswith(".part") for name in left_in(cli.home)] == [True]
    hub.cut = None
    assert pull(cli, hub).status == 0
    assert hub.sent("GET", "/storage")[-1]["range"] == f"bytes={CHUNK}-"
    assert model_in(cli.folder).read_bytes() == hub.content
    assert left_in(cli.home) == ["model.gguf"]


def test_two_processes_do_not_write_to_one_file(cli: CommandLine, hub: Hub) -> None:
    part = cli.home / "models" / "owner" / "repo" / f"model.gguf.{hashlib.sha256(hub.content).hexdigest()[:12]}.part"
    part.parent.mkdir(parents=True)
    with part.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        second = pull(cli, hub)
    assert (second.status, "another process is downloading" in second.err) == (2, True), second.err
    assert part.read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "etag", "size", "said"),
    [
        ("owner/repo/model.gguf", "0" * 64, 0, ("the checksum is", "download it again")),
        ("owner/repo/model.gguf", "a-git-hash", 0, ("cannot be verified",)),
        ("owner/repo/model.gguf", "", -5, ("cannot be verified",)),
        ("owner/repo/model.gguf", "", 10**13, ("10,000.0 GB of free disk", "10,000.0 GB of memory", "smaller")),
        ("owner/repo/other.gguf", "", 0, ("status 404", "check the name")),
        ("qwen3-0.6b", "", 0, ("status 404",)),
        ("qwen9", "", 0, ("'qwen9'", "qwen3-0.6b", "OWNER/REPO/FILE.gguf")),
        ("owner/../model.gguf", "", 0, ("not a model of the list",)),
    ],
)
def test_nothing_is_kept_of_what_cannot_be_used(
    cli: CommandLine, hub: Hub, name: str, etag: str, size: int, said: tuple[str, ...]
) -> None:
    hub.etag, hub.size = etag, size
    done = pull(cli, hub, name)
    assert done.status == 2
    assert [text for text in said if text not in done.err] == [], done.err
    assert done.err.count("packetgate: ") == 1
    assert left_in(cli.home) == []
    assert not (cli.folder / "packetgate.toml").exists()


def test_no_more_is_written_than_the_hub_states(cli: CommandLine, hub: Hub) -> None:
    hub.size = 1_000
    done = pull(cli, hub)
    assert done.status == 2
    assert "sends more than the 1,000 bytes" in done.err
    assert [file.stat().st_size for file in (cli.home / "models").rglob("*.part")] == [0]


def test_files_of_one_name_in_two_folders_are_two_models(cli: CommandLine, hub: Hub) -> None:
    for hub.name in ("owner/repo/Q4/model.gguf", "owner/repo/Q8/model.gguf"):
        assert "already here" not in pull(cli, hub).out
    assert left_in(cli.home) == ["model.gguf", "model.gguf"]


def test_an_existing_file_of_another_size_is_not_taken_for_the_model(cli: CommandLine, hub: Hub) -> None:
    path = listed_models()["qwen3-0.6b"].path_in(cli.home / "models")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    done = pull(cli, hub, "qwen3-0.6b")
    assert done.status == 2
    assert "4 bytes, not 639,446,688" in done.err


def test_another_file_than_the_list_names_is_not_downloaded(cli: CommandLine, hub: Hub) -> None:
    hub.name = "Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf"
    done = pull(cli, hub, "qwen3-0.6b")
    assert done.status == 2
    assert "it is another file" in done.err
    assert not hub.sent("GET", "/storage")


def test_without_a_network_the_error_names_the_host_and_the_ways_out(cli: CommandLine) -> None:
    host = f"127.0.0.1:{free_port()}"
    done = cli.run("model", "pull", "qwen3-0.6b", HF_ENDPOINT=f"http://{host}")
    assert done.status == 2
    assert [line for line in done.err.splitlines() if line.startswith("packetgate: ")] == done.err.splitlines()
    for part in (host, "--prime llamacpp:FILE", "Ollama"):
        assert part in done.err


def test_the_list_says_size_licence_and_what_fits(cli: CommandLine) -> None:
    done = cli.run("model", "pull", HF_ENDPOINT="http://127.0.0.1:9")
    assert done.status == 0, done.err
    rows = {line.split()[0]: line for line in done.out.splitlines()}
    assert "5.0 GB" in rows["qwen3-8b"]
    assert "Apache-2.0" in rows["qwen3-8b"]
    assert "not measured" in rows["qwen3-8b"]
    assert "fits" in rows["qwen3-0.6b"]


async def test_the_list_shows_what_evaluate_measured(cli: CommandLine, tiny_gguf: Path) -> None:
    path = listed_models()["qwen3-0.6b"].path_in(cli.home / "models")
    path.parent.mkdir(parents=True)
    path.symlink_to(tiny_gguf)
    settings = Settings(home=cli.home, lite=f"llamacpp:{path}")
    digest = await model_pool(settings).model_digest()
    assert digest
    async with open_store(settings) as store:
        await save_calibration(store, Calibration(version=evidence_version(), summary="8 of 80 cases right"), digest)
    row = next(line for line in cli.run("model", "pull").out.splitlines() if line.startswith("qwen3-0.6b"))
    assert row.endswith("downloaded")
    assert "8 of 80 cases right" in row


@pytest.mark.slow
def test_a_real_model_answers(cli: CommandLine, smollm2: Path) -> None:
    with serve_hub(smollm2.read_bytes()) as hub:
        done = pull(cli, hub)
    assert done.status == 0, done.err
    assert "Trying it: packetgate ask" in done.out
    assert "ai.list · chosen by model" in done.out
