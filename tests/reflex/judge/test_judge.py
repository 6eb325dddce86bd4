"""The judge with the shipped weights, on requests and tools outside all data sets."""

from support.packets import TRAIN, tool

from packetgate.reflex.judge.judge import (
    JUDGE_WEIGHTS,
    MAX_PARAMETERS,
    MAX_TOOL_TOKENS,
    REQUEST_TOKENS,
    encode_request,
    encode_tool,
    joined_tokens,
    judge,
    load_encoder,
)

PAINT = tool("studio.mix_paint", "colours", description="Mix paints of several colours.", colours="string")


def test_the_suitable_tool_has_the_highest_probability():
    served, other = judge("Find trains from Basel to Verona", [TRAIN, PAINT])
    assert served > 0.5 > other


def test_long_inputs_are_truncated():
    tokenizer = load_encoder(JUDGE_WEIGHTS).tokenizer
    parameters = {f"parameter_{number}": "string" for number in range(60)}
    large = tool("x.large", description="word " * 500, **parameters)
    request, (read, names) = encode_request("word " * 900, tokenizer), encode_tool(large, tokenizer)
    ids, segments = joined_tokens(request, read)
    assert len(request.ids) == REQUEST_TOKENS
    assert 0 < len(names) <= MAX_PARAMETERS
    assert len(read) <= MAX_TOOL_TOKENS + 1
    assert len(ids) == len(segments) <= 512
    assert len(judge("word", [large])) == 1
