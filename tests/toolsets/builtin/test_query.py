"""`embedding.query`: by words and by embeddings."""

import os
import re
from zlib import crc32

import pytest
from langchain_core.embeddings import Embeddings

from packetgate.toolsets.builtin.corpus import Corpus, split_into_passages
from packetgate.toolsets.builtin.files import Root
from packetgate.toolsets.servers.opening import builtin_servers


class WordHashes(Embeddings):
    """Embeds a text by the hashes of its words. Synonyms of `car` have the same hash."""

    def __init__(self):
        self.embedded = []
        self.broken = False

    def embed_query(self, text):
        if self.broken:
            raise ConnectionError("the endpoint is down")
        vector = [0.01] * 64
        for word in re.findall(r"\w+", text.lower()):
            vector[crc32(("car" if word == "automobile" else word).encode()) % 64] += 1.0
        return vector

    def embed_documents(self, texts):
        self.embedded += texts
        return [self.embed_query(text) for text in texts]


@pytest.fixture
def library(folder):
    (folder / "docs").mkdir()
    (folder / "docs" / "gate.md").write_text("The gate reviews every call before it runs.\n")
    (folder / "docs" / "car.md").write_text("How to repair a car.\n")
    (folder / "retry.py").write_text("def attempt():\n    'Wait, then connect again.'\n")
    return folder


@pytest.fixture
def query(call):
    async def query(text, **arguments):
        result = await call("embedding.query", query=text, **arguments)
        assert result.success, result.error
        return result.structured, result.output

    return query


@pytest.fixture
def embeddings():
    return WordHashes()


@pytest.fixture
def query_embedded(folder, embeddings):
    server = builtin_servers(folder, embeddings)["embedding"]

    async def query(text):
        result = await server.call("query", {"query": text})
        return result.structured, result.output

    return query


def paths(found):
    return [hit["path"] for hit in found["hits"]]


async def test_a_hit_has_path_lines_score_and_text(query, library):
    found, text = await query("Which calls are reviewed?")
    assert (found["search"], found["files_searched"]) == ("lexical", 3)
    hit = {"path": "docs/gate.md", "first_line": 1, "last_line": 1}
    assert found["hits"][0].items() >= {**hit, "text": "The gate reviews every call before it runs."}.items()
    assert found["hits"][0]["score"] > 0
    assert text.startswith("1 hit for 'Which calls are reviewed?' in 3 files, by words.\n\ndocs/gate.md, lines 1 to 1")
    found, text = await query("zebra")
    assert found["hits"] == []
    assert text.startswith("NO HITS: nothing in 3 files matches 'zebra'")


@pytest.mark.parametrize(
    "text",
    ['gate"', "gate AND", "NEAR(gate)", "path:gate*", "gate^2 - (", "NOT gate", "{gate} : x", "What is the gate?"],
)
async def test_syntax_characters_and_common_words_in_a_query_are_ignored(query, library, text):
    assert "docs/gate.md" in paths((await query(text))[0])


@pytest.mark.parametrize("text", ["???", "  "])
async def test_a_query_without_a_word_is_refused(fail, library, text):
    assert "in words" in await fail("embedding.query", query=text)


async def test_hits_are_limited_and_do_not_overlap(query, folder):
    for number in range(8):
        (folder / f"{number}.txt").write_text("gate\n")
    (folder / "long.txt").write_text("".join(f"gate {number}\n" for number in range(1, 201)))

    assert len((await query("gate"))[0]["hits"]) == 5
    hits = [hit for hit in (await query("gate", top_k=50))[0]["hits"] if hit["path"] == "long.txt"]
    lines = [line for hit in hits for line in range(hit["first_line"], hit["last_line"] + 1)]
    assert len(hits) > 1
    assert len(lines) == len(set(lines))


async def test_changes_are_seen_by_the_next_query(query, library):
    await query("gate")
    (library / "docs" / "gate.md").write_text("It is a harbour now, with ships.\n")
    (library / "retry.py").unlink()
    (library / "new.md").write_text("a lighthouse\n")

    assert paths((await query("harbour"))[0]) == ["docs/gate.md"]
    assert paths((await query("lighthouse"))[0]) == ["new.md"]
    assert paths((await query("connect"))[0]) == []


async def test_unsuitable_files_are_not_searched(query, library):
    for name in ("node_modules", "a.egg-info"):
        (library / name).mkdir()
        (library / name / "a.txt").write_text("outside\n")
    (library / ".hidden").write_text("outside\n")
    (library / "away").symlink_to(library.parent)
    os.mkfifo(library / "pipe")
    (library / "picture.png").write_bytes(b"\x89PNG\0")
    (library / "huge.txt").write_text("gate " * 300_000)
    found, text = await query("outside")
    assert (found["hits"], found["files_searched"]) == ([], 3)
    assert "Not searched: 1 too large, 1 not text, 2 folders of built or installed files." in text


def test_the_size_of_a_scan_is_limited(folder, monkeypatch):
    for number in range(5):
        (folder / f"{number}.txt").write_text("x" * 10)
    monkeypatch.setattr("packetgate.toolsets.builtin.tree.MAX_TOTAL_BYTES", 25)
    scan = Corpus(Root(folder)).scan()
    assert (scan.files, scan.skipped["beyond the limits"]) == (2, 3)


@pytest.mark.parametrize("lines", [0, 1, 39, 40, 41, 500])
def test_passages_cover_every_line(lines):
    chunks = list(split_into_passages("a", "".join(f"{number}\n" for number in range(1, lines + 1))))

    assert {int(line) for chunk in chunks for line in chunk.text.split()} == set(range(1, lines + 1))
    assert all(chunk.last_line - chunk.first_line < 40 for chunk in chunks)
    assert all(chunk.text.split()[0] == str(chunk.first_line) for chunk in chunks)
    assert all(chunk.text.split()[-1] == str(chunk.last_line) for chunk in chunks)


async def test_embeddings_find_the_meaning_and_embed_only_changed_files(query_embedded, embeddings, library):
    found, text = await query_embedded("automobile")
    assert (found["search"], found["note"], paths(found)[0]) == ("embeddings", "", "docs/car.md")
    assert text.startswith("3 hits for 'automobile' in 3 files, by meaning, with embeddings.")

    embeddings.embedded.clear()
    (library / "docs" / "car.md").write_text("How to sail a boat over the sea.\n")
    (library / "retry.py").unlink()
    found, _ = await query_embedded("boat")
    assert embeddings.embedded == ["How to sail a boat over the sea."]
    assert paths(found) == ["docs/car.md", "docs/gate.md"]


def test_a_query_with_embeddings_reaches_outside(folder, embeddings):
    specs = [builtin_servers(folder, one)["embedding"].tool_specs() for one in (None, embeddings)]
    assert [spec.open_world for (spec,) in specs] == [False, True]


async def test_if_the_embeddings_fail_words_are_searched(query_embedded, embeddings, library, monkeypatch):
    embeddings.broken = True
    found, text = await query_embedded("repair")
    assert (found["search"], paths(found)) == ("lexical", ["docs/car.md"])
    assert "ConnectionError" in found["note"]
    assert found["note"] in text

    embeddings.broken = False
    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "embed_documents", lambda texts: [embeddings.embed_query(texts[0])])
        assert (await query_embedded("repair"))[0]["search"] == "lexical"
    assert (await query_embedded("repair"))[0]["search"] == "embeddings"
