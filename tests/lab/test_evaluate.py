"""`packetgate evaluate`: a model's cases, its passport, and their effect on the gate."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.prompts import call
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError

from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.lab.cases import load_cases
from packetgate.lab.passport import CaseResult, EvaluatedCall, evaluation_version, save_case_result
from packetgate.models.pool import ModelPool
from packetgate.state.base import ConfidenceSource
from packetgate.tools.calibration import curve_name

CASES = load_cases().cases
READ = call("ai.read", path="plan.txt")


def model_digest(monkeypatch: pytest.MonkeyPatch, model: str, url: str) -> str:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    name = asyncio.run(ModelPool(model).model_digest())
    assert name
    return name


def on_record(cli: CommandLine, name: str, *, but: int = 0) -> None:
    """Store the results of a model with high confidence in wrong calls, except for some cases."""
    kinds = [curve_name("model", source) for source in ConfidenceSource]

    async def record() -> None:
        async with open_store(Settings(home=cli.home)) as store:
            for at, case in enumerate(CASES[but:]):
                right = at % 10 == 0
                calls = tuple(
                    EvaluatedCall(tool="files.read", right=right, review=kind, score=0.93, passed=True, only_reads=True)
                    for kind in kinds
                )
                row = CaseResult(
                    version=evaluation_version(), case=case.name, kind=case.kind, right=right, calls=calls, seconds=3.0
                )
                await save_case_result(store, name, row)

    asyncio.run(record())


@pytest.mark.slow
def test_the_gate_uses_the_curve_of_the_passport(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = scripted_openai.base_url

    def status(model: str) -> int:
        scripted_openai.script(READ, "It opens at seven.")
        return cli.run("ask", "Read plan.txt", "--lite", model, OPENAI_BASE_URL=url).status

    assert status("openai:small") == 0
    assert "not yet" in cli.run("doctor", "--lite", "openai:small", OPENAI_BASE_URL=url).out
    on_record(cli, model_digest(monkeypatch, "openai:small", url))
    scripted_openai.requests.clear()
    done = cli.run("evaluate", "openai:small", OPENAI_BASE_URL=url)
    assert done.status == 0, done.err
    assert "80 of 80 cases are on record" in done.err
    assert re.search(r"all +80 +8 +72 +72", done.out)
    assert "too few to find a threshold above which 95 % are right" in done.out
    assert scripted_openai.requests == []
    assert status("openai:small") == 3
    assert status("openai:other") == 0
    assert status("openai:small?temperature=0.9") == 0
    doctor = cli.run("doctor", "--lite", "openai:small", OPENAI_BASE_URL=url).out
    assert "8 of 80 cases right, of the calls past the gate 48 of 480 right" in " ".join(doctor.split())


@pytest.mark.slow
def test_a_killed_evaluation_continues(cli: CommandLine, smollm2: Path) -> None:
    model = f"llamacpp:{smollm2}?n_threads=1&seed=1"
    evaluate = ("evaluate", model, "--kinds", "holds", "--cases", "2", "--json")
    (reader, writer), nothing = os.pipe(), os.open(os.devnull, os.O_RDWR)
    process = cli.fork(evaluate, (nothing, nothing, writer))
    for end in (writer, nothing):
        os.close(end)
    with os.fdopen(reader) as lines:
        assert lines.readline().startswith("1 of 2, holds-15: ")
        process.kill()
    done = cli.run(*evaluate)
    assert done.status == 0, done.err
    assert re.match("[12] of 2 cases are on record", done.err)
    found = json.loads(done.out)
    assert (len(found["rows"]), found["of"], found["own_language"]) == (2, 80, True)
    assert (found["figures"]["all"]["cases"], found["figures"]["near"]["cases"]) == (2, 0)
    assert found["settings"] == {"review": "all", "confidence_threshold": None}
    assert all(one["evaluated"] > 0 for one in found["rows"] if one["calls"])
    again = cli.run(*evaluate, "--again", "--cases", "1")
    assert "on record" not in again.err
    assert "not yet" in cli.run("doctor", "--lite", model).out


def test_a_missing_or_failing_endpoint_is_one_error(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    unreachable = cli.run("evaluate", "openai:small", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert unreachable.status == 2
    assert len(unreachable.err.splitlines()) == 1
    assert "cannot be reached" in unreachable.err
    scripted_openai.script(*[HttpError(429, "slow down")] * 20)
    scripted_openai.verdict = HttpError(429, "slow down")
    some = ("--kinds", "near", "--cases", "4")
    limited = cli.run("evaluate", "openai:small", *some, OPENAI_BASE_URL=scripted_openai.base_url)
    assert limited.status == 1
    assert "[decision-unusable]" in limited.err.splitlines()[-1]
    again = cli.run("evaluate", "openai:small", *some, OPENAI_BASE_URL=scripted_openai.base_url)
    assert "on record" not in again.err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), "name one model"),
        (("reflex",), "name one model"),
        (("decisions:d",), "prime"),
        (("openai:m", "--kinds", "odd"), "'odd'"),
    ],
)
def test_invalid_evaluations_are_refused(arguments: tuple[str, ...], names: str, cli: CommandLine) -> None:
    done = cli.run("evaluate", *arguments)
    assert (done.status, names in done.err) == (2, True), done.err


def test_options_of_one_role_alone_are_named(cli: CommandLine, scripted_openai: ScriptedOpenAI) -> None:
    (cli.folder / "packetgate.toml").write_text("[models.prime]\nseed = 1\n[models.lite]\ntop_p = 0.5\n")
    done = cli.run("evaluate", "openai:small", OPENAI_BASE_URL=scripted_openai.base_url)
    assert done.status == 2
    assert "openai:small has other options as lite than as prime" in done.err
    assert "models.lite.top_p, packetgate.toml: models.prime.seed" in done.err
