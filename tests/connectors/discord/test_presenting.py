"""What a question looks like, whatever its calls hold: within Discord's limits, and nothing of it hidden."""

import json
from typing import Any

import pytest

from packetgate.connectors.discord.presenting import Press, headline, parts


def asking(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "approval", "action_requests": list(requests), **more}


def call(name: str = "ai.write", preview: str = "", description: str = "about it", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "arguments": args, "description": description, "preview": preview}


def described(question: dict[str, Any]) -> list[str]:
    return [str(embed.description) for embed in parts(question)["embeds"]]


def test_a_preview_is_shown_as_a_diff():
    (shown,) = described(asking(call(preview="-old\n+new", path="a.txt")))
    assert "```diff\n-old\n+new\n```" in shown
    assert shown.startswith("```json\n")


def test_no_markdown_is_read_from_what_a_model_or_a_tool_wrote():
    (shown,) = described(asking(call(description="[click](http://x.example) **now** `a` does not come from you")))
    assert "[click](http" not in shown.replace("\\", "")[: shown.index("\\")]
    assert "\\*\\*now" in shown
    assert "\\`a\\` does not come from you" in shown


@pytest.mark.parametrize("count", [1, 2, 5, 10, 16])
@pytest.mark.parametrize("size", [1, 500, 5_000])
def test_it_keeps_within_the_limits_and_what_is_cut_comes_as_a_file(count: int, size: int):
    each = [call(f"server.{'n' * 80}", "```\n" * size, "d" * size, text="`" * size) for _ in range(count)]
    made = parts(asking(*each))
    embeds = made["embeds"]
    assert len(embeds) == min(count, 10)
    assert all(len(embed.description) <= 4_096 and len(embed.title) <= 256 for embed in embeds)
    assert sum(len(embed) for embed in embeds) <= 6_000
    assert all(embed.description.count("```") == 4 for embed in embeds)
    cut = count > 10 or any("whole in calls.json" in embed.description or embed.title.endswith("…") for embed in embeds)
    assert ("attachments" in made) is cut
    if cut:
        whole = json.loads(made["attachments"][0].fp.read())
        assert [one["arguments"]["text"] for one in whole] == ["`" * size] * count


def test_what_could_turn_letters_around_is_told_by_name_and_a_long_name_comes_whole():
    name = "server." + "n" * 60 + "_and_delete"
    made = parts(asking(call(name, "-a\u202eb", "c\u2066d\x1b", text="e\u202ef")))
    (embed,) = made["embeds"]
    assert all(told in embed.description for told in ("-a<U+202E>b", "c<U+2066>d␛", '"text": "e<U+202E>f"'))
    assert [one["name"] for one in json.loads(made["attachments"][0].fp.read())] == [name]


def test_a_problem_is_said_above():
    line = headline(asking(call(), call(), problem="bad *edit*"), 7, None)
    assert line == "<@7>, may these 2 run?\n⚠️ bad \\*edit\\*"


@pytest.mark.parametrize("action", ["approve", "edit", "reject", "answer", "edited", "answered"])
def test_a_press_is_read_from_its_id(action: Any):
    press = Press(action, 2**63 - 1, "0123456789abcdef" * 2)
    assert Press.of(press.id) == press
    assert len(press.id) <= 100


@pytest.mark.parametrize(
    "custom_id",
    [None, 7, "", "approve", f"packetgate:run:1:{'0123456789abcdef' * 2}", "packetgate:approve:x:0", "a" * 100],
)
def test_what_others_made_is_no_press(custom_id: object):
    assert Press.of(custom_id) is None
