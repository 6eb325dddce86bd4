"""Excerpts of a long text: the paragraphs that share words with a request."""

from packetgate.tools.text.passages import nearest_passages

PAGE = """# Kiln

The kiln fires at night:

```
heat kiln

cool kiln
```

Glaze is kept in the shed.

The kiln's key hangs at the door."""


def test_a_code_block_is_whole_and_part_of_the_paragraph_before_it():
    fires, key = nearest_passages(PAGE, "the kiln's firing and key", 2)
    assert fires == "The kiln fires at night:\n\n```\nheat kiln\n\ncool kiln\n```"
    assert key == "The kiln's key hangs at the door."


def test_an_open_fence_ends_with_the_text():
    assert nearest_passages("Kiln:\n\n~~~\nheat\n\n```\n\nnow", "heat", 3) == ["Kiln:\n\n~~~\nheat\n\n```\n\nnow"]


def test_nothing_shared_gives_nothing():
    assert nearest_passages(PAGE, "umbrella", 3) == nearest_passages("", "kiln", 3) == []
