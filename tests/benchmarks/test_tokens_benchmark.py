"""The benchmark of tokens counts the sent prompts, and prints each figure with its goal."""

import json
from typing import Any

from support.packets import FILES, tool

from benchmarks.tokens.__main__ import measure
from benchmarks.tokens.counting import count, openai_tools
from benchmarks.tokens.packetgate import Asked, in_full, selections
from benchmarks.tokens.sets import Measured
from packetgate.tools.catalogue.catalogue import Catalogue

REQUEST = "Search the files for the word kettle"
MAIL = tool("post.send_mail", "to", to={"type": "string", "description": "Who gets it."}, description="Send a mail.")
MANY = Catalogue([*FILES.values(), *(tool(f"stock.sell_{n}", description=f"Sell the share {n}.") for n in range(40))])


def test_the_tokens_of_the_full_catalogue_match_a_count_by_hand():
    one = Catalogue([MAIL])
    schema = '{"type":"object","properties":{"to":{"type":"string","description":"Who gets it."}},"required":["to"]}'
    own = f"- post.send_mail: Send a mail.\n  arguments (JSON Schema): {schema}"
    function = f'{{"name":"post.send_mail","description":"Send a mail.","parameters":{schema}}}'
    assert in_full(one) == own
    assert openai_tools([MAIL]) == f'[{{"type":"function","function":{function}}}]'
    assert (count(in_full(one)), count(openai_tools([MAIL]))) == (42, 50)
    assert in_full(Catalogue([MAIL, *FILES.values()])).count("arguments (JSON Schema)") == 1 + len(FILES)


async def only(texts: Any) -> Any:
    (text,) = [one async for one in texts]
    return text


async def test_each_part_of_packetgates_prompt_is_counted():
    asked: Asked = await only(selections(MANY, [REQUEST]))
    assert MANY.long_ledger in asked.tool_part
    assert "files.search_files: Search the files for words." in asked.tool_part
    assert REQUEST in asked.messages
    assert count(asked.tool_part) < count(asked.messages)
    shown = [name for name, spec in MANY.items() if spec.brief_line.split(":")[0] + ":" in asked.tool_part]
    assert 0 < len(shown) < len(MANY)
    assert json.loads(asked.form) == {"type": "json_object"}  # OpenAI does not accept schemas with alternatives


async def test_each_figure_is_a_share_of_the_full_catalogue():
    figures = {one.name: one for one in await measure(Measured("many", MANY, [REQUEST, "Sell the share 7"], 0.5))}
    full = count(in_full(MANY))
    assert figures["full catalogue"].tokens == [full]
    assert all(one.full == full for one in figures.values())
    tools, form, whole = (
        figures[f"packetgate, {part}"].tokens for part in ("tool part", "answer's schema", "whole selection prompt")
    )
    assert all(a + b < c for a, b, c in zip(tools, form, whole, strict=True))
    assert figures["packetgate, tool part"].goal == 0.5
    assert [len(one.tokens) for one in figures.values()] == [1, 1, 2, 2, 2, 2, 2]
