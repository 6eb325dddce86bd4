"""Goals for the share of tools in the selection prompt, with the tools of real servers."""

import asyncio
from argparse import Namespace

import pytest
from support.data_folder import data_folder
from support.programs import require

from benchmarks.tokens.__main__ import measure, sets
from benchmarks.tokens.counting import count
from benchmarks.tokens.packetgate import in_full, selections
from benchmarks.tokens.sets import livemcpbench


@pytest.mark.timeout(600)
async def test_14_tools_are_shown_whole_in_fewer_tokens_than_their_schemas(capsys: pytest.CaptureFixture[str]):
    require("npx")
    (files,) = [one async for one in sets(Namespace(tools=None, data=None))]
    assert "livemcpbench is left out: give the folder" in capsys.readouterr().err
    assert len(files.catalogue) == 14
    assert "files.read_text_file" in files.catalogue
    (tool_part,) = [one for one in await measure(files) if one.goal == 1.0]
    assert len(tool_part.tokens) == len(files.requests) == 12
    assert tool_part.met, tool_part.as_text()


@pytest.mark.data_sets
async def test_527_tools_take_less_than_5_percent_of_the_full_catalogue():
    data = data_folder()
    assert data is not None
    bench = await asyncio.to_thread(livemcpbench, data)
    assert (len(bench.catalogue), bench.left_out, bench.goal) == (527, 0, 0.05)
    full = count(in_full(bench.catalogue))
    shares = [count(one.tool_part) / full async for one in selections(bench.catalogue, bench.requests)]
    assert len(shares) == len(bench.requests) > 90
    assert 0 < max(shares) < 0.05
