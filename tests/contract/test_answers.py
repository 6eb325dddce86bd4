"""The output for user and model states every outcome and leaks nothing; small talk runs nothing."""

import asyncio
from pathlib import Path

import pytest
from contract.doors import ALL, GATES, LIBRARY, MIDDLEWARE, PROXY, ROUTERS, Setup, open_door
from contract.office import LONG, MAIL, SECRET
from contract.rows import RUNS, Row, check, each, find, request, through

WEATHER = request("Check the weather in Bern", ("check_weather", {"city": "Bern"}))

LOG = request("Read the log", ("read_log", {}))

RESULTS = [
    Row("a failed call is stated with its error", WEATHER, RUNS, "the weather station burned down"),
    Row("a secret in a result is redacted", request("Read the settings", ("read_settings", {})), RUNS, "colour = blue",
        does_not_say=SECRET),
    Row("a long result is cut with a note", LOG, RUNS, "[cut", does_not_say=LONG[-200:],
        doors=[door for door in GATES if door != PROXY]),
    Row("a long result is complete", LOG, RUNS, LONG[-200:], doors=[PROXY]),
]  # fmt: skip


@each(RESULTS)
async def test_results_are_stated(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)


@through(*ALL)
async def test_several_calls_run_concurrently(door: str, tmp_path: Path) -> None:
    together = asyncio.Barrier(3)

    async def meet(_: str) -> None:
        async with asyncio.timeout(60):
            await together.wait()

    async with open_door(door, Setup(tmp_path)) as opened:
        opened.office.on_call = meet
        await opened.turn([find(1), find(2), find(3)], words="Find the orders 1, 2 and 3")
    assert sorted(args["number"] for _, args in opened.office.made) == [1, 2, 3]


@through(*ROUTERS)
async def test_at_most_three_passes_run_and_the_output_states_the_limit(door: str, tmp_path: Path) -> None:
    steps = [[find(number)] for number in (1, 2, 3, 4)]
    async with open_door(door, Setup(tmp_path)) as opened:
        outcome = await opened.turn(*steps, words="Find the orders 1, 2, 3 and 4")
    assert [args["number"] for _, args in opened.office.made] == [1, 2, 3]
    assert "the limit is 3 rounds" in outcome.output


@through(*ROUTERS)
async def test_calls_beyond_a_cap_run_in_the_next_pass_or_are_named(door: str, tmp_path: Path) -> None:
    step = [find(number) for number in range(1, 8)]
    async with open_door(door, Setup(tmp_path, {"max_parallel_calls": 2})) as opened:
        outcome = await opened.turn(step, words="Find the orders 1, 2, 3, 4, 5, 6 and 7")
    made = [args["number"] for _, args in opened.office.made]
    assert made[:4] == [1, 2, 3, 4]
    assert "limit" in outcome.output
    assert len(made) < 7


LEAKS = {
    "a call in tags": 'Fine.<tool_call>{"name": "send_mail", "arguments": {}}</tool_call>',
    "a thought": "<think>I will call send_mail now</think>Fine.",
    "a call in tokens": 'Fine.<|tool_call|>{"name": "send_mail", "arguments": {}}',
}


@through(LIBRARY)
@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
async def test_leaked_markup_is_not_in_the_answer(leak: str, door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, answer=leak)) as opened:
        outcome = await opened.turn([find()], words="Find order 17")
    assert "Fine." in outcome.answer
    assert not any(word in outcome.answer for word in ("send_mail", "<", "think"))


@through(LIBRARY)
async def test_markup_in_a_code_fence_stays(door: str, tmp_path: Path) -> None:
    answer = "Write it like this:\n\n```\n<tool_call>{}</tool_call>\n```"
    async with open_door(door, Setup(tmp_path, answer=answer)) as opened:
        outcome = await opened.turn(words="How does a tool call look?")
    assert "<tool_call>{}</tool_call>" in outcome.answer


@through(LIBRARY, MIDDLEWARE)
@pytest.mark.parametrize("words", ["Hello", "Thanks, that was all", "You are a great help"])
async def test_small_talk_runs_nothing(words: str, door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, answer="You are welcome.")) as opened:
        outcome = await opened.turn(words=words)
    assert (opened.office.made, outcome.asked, outcome.answer) == ([], [], "You are welcome.")


@through(*ROUTERS)
async def test_tool_output_is_not_in_the_system_prompt(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path)) as opened:
        outcome = await opened.turn([("read_mail", {})], words="Read my mail")
    before, _, after = outcome.output.removeprefix(outcome.answer).partition("Read my mail")
    assert MAIL not in before
    assert MAIL in after
