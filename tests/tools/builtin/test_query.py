import os
import re
import sqlite3
from zlib import crc32

import pytest
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings

from packetgate.tools.builtin.corpus import Corpus, chunks_of, match_any
from packetgate.tools.builtin.files import Root
from packetgate.tools.servers.opening import builtin_servers


class WordHashes(Embeddings):
    """A text is the bag of its words' hashes; synonyms of `car` are the same word."""

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


async def test_words_are_found_with_their_place(query, library):
    found, text = await query("Which calls are reviewed?")

    assert found["search"] == "lexical"
    assert found["files_searched"] == 3
    assert found["hits"][0] | {"score": None} == {
        "path": "docs/gate.md",
        "first_line": 1,
        "last_line": 1,
        "score": None,
        "text": "The gate reviews every call before it runs.",
    }
    assert found["hits"][0]["score"] > 0
    assert text.startswith("1 hit for 'Which calls are reviewed?' in 3 files, by words.\n\ndocs/gate.md, lines 1 to 1")
    assert "The gate reviews every call" in text


async def test_a_file_is_found_by_its_name(query, library):
    assert paths((await query("retry"))[0]) == ["retry.py"]


async def test_a_name_weighs_more_than_a_mention(query, folder):
    (folder / "a.md").write_text("see packets, and other things that are told here\n")
    (folder / "packets.md").write_text("see here, and other things that are told here\n")

    assert paths((await query("packets"))[0]) == ["packets.md", "a.md"]


@pytest.mark.parametrize(
    "text", ['gate"', "gate AND", "NEAR(gate)", "path:gate*", "gate^2 - (", "NOT gate", "{gate} : x"]
)
async def test_the_query_is_words_and_no_syntax(query, library, text):
    assert "docs/gate.md" in paths((await query(text))[0])


def test_common_words_count_only_when_there_are_no_others():
    assert match_any("What is the gate?") == '"gate"'
    assert match_any("who is it") == '"who" OR "is" OR "it"'


async def test_letters_with_marks_are_letters_of_their_own(query, folder):
    (folder / "a.txt").write_text("йод и вода\n")

    assert paths((await query("йод"))[0]) == ["a.txt"]


@pytest.mark.parametrize("text", ["???", "  "])
async def test_a_query_without_a_word_is_refused(fail, library, text):
    assert "in words" in await fail("embedding.query", query=text)


async def test_no_hit_is_said_loudly(query, library):
    found, text = await query("zebra")

    assert found["hits"] == []
    assert text.startswith("NO HITS: nothing in 3 files matches 'zebra'")


async def test_an_empty_folder_is_said_loudly(query):
    assert (await query("gate"))[1] == "NO HITS: nothing in 0 files matches 'gate', searched by words. Try other words."


async def test_top_k_bounds_the_hits(query, folder):
    for number in range(8):
        (folder / f"{number}.txt").write_text("gate\n")

    assert len((await query("gate"))[0]["hits"]) == 5
    assert len((await query("gate", top_k=7))[0]["hits"]) == 7


async def test_hits_of_one_file_do_not_overlap(query, folder):
    (folder / "long.txt").write_text("".join(f"gate {number}\n" for number in range(1, 201)))

    hits = (await query("gate", top_k=50))[0]["hits"]

    seen = [line for hit in hits for line in range(hit["first_line"], hit["last_line"] + 1)]
    assert len(hits) > 1
    assert len(seen) == len(set(seen))


async def test_changes_are_seen_by_the_next_query(query, library):
    await query("gate")
    (library / "docs" / "gate.md").write_text("It is a harbour now, with ships.\n")
    (library / "retry.py").unlink()
    (library / "new.md").write_text("a lighthouse\n")

    assert paths((await query("gate reviews"))[0]) == ["docs/gate.md"], "the name still says gate"
    assert paths((await query("harbour"))[0]) == ["docs/gate.md"]
    assert paths((await query("lighthouse"))[0]) == ["new.md"]
    assert paths((await query("connect"))[0]) == []


async def test_what_is_left_out_is_counted(query, library):
    (library / "picture.png").write_bytes(b"\x89PNG\0")
    (library / "latin.txt").write_bytes(b"gr\xfc\xdfe")
    (library / "huge.txt").write_text("gate " * 300_000)

    found, text = await query("gate")

    assert found["left_out"] == {
        "too_large": 1,
        "not_text": 2,
        "beyond_limits": 0,
        "unreadable": 0,
        "secret_or_denied": 0,
    }
    assert "Not searched: 1 too large, 2 not text." in text


async def test_hidden_built_and_linked_files_are_not_searched(query, folder):
    for name in (".git", "node_modules", ".venv", "__pycache__", "dist", "build", "a.egg-info"):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_text("outside\n")
    (folder / ".env").write_text("outside\n")
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "away").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")

    assert (await query("outside"))[0]["files_searched"] == 0


def test_the_file_limits_hold(folder, monkeypatch):
    for number in range(5):
        (folder / f"{number}.txt").write_text("x" * 10)

    monkeypatch.setattr("packetgate.tools.builtin.corpus.MAX_FILES", 3)
    few = Corpus(Root(folder)).scan()
    monkeypatch.undo()
    monkeypatch.setattr("packetgate.tools.builtin.corpus.MAX_TOTAL_BYTES", 25)
    small = Corpus(Root(folder)).scan()

    assert (len(few.files), few.left_out["beyond_limits"]) == (3, 2)
    assert (len(small.files), small.left_out["beyond_limits"]) == (2, 3)


def test_only_changed_files_are_read_again(library):
    corpus = Corpus(Root(library))
    before = corpus.scan().files
    (library / "retry.py").write_text("something else entirely, and longer than before it was\n")

    after = corpus.scan().files

    assert [path for path in after if after[path] is not before[path]] == ["retry.py"]


@pytest.mark.parametrize("lines", [0, 1, 39, 40, 41, 70, 71, 500])
def test_chunks_cover_every_line(lines):
    chunks = list(chunks_of("a", "".join(f"{number}\n" for number in range(1, lines + 1))))

    assert {int(line) for chunk in chunks for line in chunk.text.split()} == set(range(1, lines + 1))
    assert all(chunk.last_line - chunk.first_line < 40 for chunk in chunks)
    assert all(chunk.text.split()[0] == str(chunk.first_line) for chunk in chunks)
    assert all(chunk.text.split()[-1] == str(chunk.last_line) for chunk in chunks)
    assert len(chunks) == len(set(chunks))


def test_a_very_long_line_becomes_many_chunks():
    chunks = list(chunks_of("a", "x" * 100_000))

    assert len(chunks) > 1
    assert {(chunk.first_line, chunk.last_line) for chunk in chunks} == {(1, 1)}
    assert all(len(chunk.text) <= 40 * 501 for chunk in chunks)


async def test_embeddings_find_the_meaning(query_embedded, library):
    found, text = await query_embedded("automobile")

    assert found["search"] == "embeddings"
    assert found["note"] == ""
    assert paths(found)[0] == "docs/car.md"
    assert text.startswith("3 hits for 'automobile' in 3 files, by meaning, with embeddings.")


async def test_only_changed_files_are_embedded_again(query_embedded, embeddings, library):
    await query_embedded("car")
    embeddings.embedded.clear()
    (library / "docs" / "car.md").write_text("How to sail a boat over the sea.\n")
    (library / "retry.py").unlink()

    found, _ = await query_embedded("boat")

    assert embeddings.embedded == ["How to sail a boat over the sea."]
    assert paths(found) == ["docs/car.md", "docs/gate.md"]
    assert "repair" not in str(found)


async def test_every_part_of_a_very_long_line_is_found(query_embedded, folder):
    (folder / "min.js").write_text("rose " * 10_000 + "tulip " * 10_000 + "lily " * 10_000)

    for word in ("rose", "tulip", "lily"):
        found, _ = await query_embedded(word)
        assert set(found["hits"][0]["text"].split()) >= {word}


async def test_an_endpoint_that_answers_too_little_gives_way_to_words(query_embedded, embeddings, library, monkeypatch):
    monkeypatch.setattr(embeddings, "embed_documents", lambda texts: [embeddings.embed_query(texts[0])])

    found, _ = await query_embedded("repair")

    assert found["search"] == "lexical"
    assert "3 texts were sent and 1 embeddings came back" in found["note"]


async def test_failing_embeddings_give_way_to_words_and_say_so(query_embedded, embeddings, library):
    embeddings.broken = True
    found, text = await query_embedded("repair")

    assert found["search"] == "lexical"
    assert paths(found) == ["docs/car.md"]
    assert found["note"] in text
    assert found["note"] == (
        "The embeddings failed (ConnectionError: the endpoint is down), so words were searched instead."
    )

    embeddings.broken = False
    assert (await query_embedded("repair"))[0]["search"] == "embeddings"


async def test_an_endpoint_that_is_down_gives_way_to_words(library):
    down = OpenAIEmbeddings(
        base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0, check_embedding_ctx_length=False
    )

    found = (await builtin_servers(library, down)["embedding"].call("query", {"query": "repair"})).structured

    assert found["search"] == "lexical"
    assert "APIConnectionError" in found["note"]


def test_sqlite_has_full_text_search():
    assert sqlite3.connect(":memory:").execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone() == (1,)
