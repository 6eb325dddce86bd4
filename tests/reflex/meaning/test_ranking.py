import random
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tool_specs import a_tool

from benchmarks.train.trees import trees_of
from packetgate.ranking.ranking import Ranking
from packetgate.reflex.meaning.encoder import (
    SentenceEncoder,
    StaticEncoder,
    Vectors,
    encoded_text,
    sentence_encoder,
)
from packetgate.reflex.meaning.ranker import SemanticModel
from packetgate.reflex.meaning.space import Trees
from packetgate.tools.spec.tool_spec import ToolSpec

OFFICE = [
    a_tool("weather.get_forecast", "Get the weather forecast of a city."),
    a_tool("mail.send_letter", "Send an e-mail to somebody."),
    a_tool("tasks.create", "Create a task with a due date."),
    a_tool("files.read", "Read the text of a file."),
    a_tool("git.log", "Show the recent commits of a repository."),
]
MANY = [a_tool(f"shelf.item_{number}", f"Fetch item number {number} from the shelf.") for number in range(80)]


def ranked(specs: list[ToolSpec], meaning: SemanticModel | None = None) -> Ranking:
    """Return a ranking with every tool's vector."""
    meaning = meaning or SemanticModel()
    ranking = Ranking(specs, meaning=meaning)
    ranking.rank("begin")
    assert meaning.fine.wait(120)
    return ranking


@pytest.mark.parametrize(
    ("request_", "tool"),
    [
        ("will it rain in Paris tomorrow", "weather.get_forecast"),
        ("what changed lately in this code base", "git.log"),
        ("put it on my to-do list", "tasks.create"),
    ],
)
def test_a_tool_without_a_common_word_is_found(request_: str, tool: str):
    assert ranked(OFFICE).rank(request_)[0].name == tool


def test_the_order_does_not_depend_on_the_order_of_tools_or_of_requests():
    one, other = ranked(OFFICE), ranked(OFFICE[::-1])
    requests = ["send a mail", "the weather, please. And a task for tomorrow.", "read notes.txt"]
    assert [one.rank(request) for request in requests] == [other.rank(request) for request in requests[::-1]][::-1]


def test_a_new_catalogue_is_ranked_before_its_vectors_are_computed():
    meaning = SemanticModel()
    ranking = Ranking(MANY + OFFICE, meaning=meaning)
    assert ranking.rank("send a mail")[0].name == "mail.send_letter"
    assert ranking.index._space is not None
    assert meaning.fine.wait(120)
    assert ranking.rank("send a mail")[0].name == "mail.send_letter"
    assert ranking.index._space.vectors is meaning.fine


def test_an_update_computes_only_new_vectors():
    meaning = SemanticModel()
    first = ranked(MANY, meaning)
    first.rank("item")
    seen: list[str] = []
    encoder = meaning.fine.encoder

    class Counted:
        name, floor = encoder.name, encoder.floor

        def vectors(self, texts: list[str]) -> np.ndarray:
            seen.extend(texts)
            return encoder.vectors(texts)

    meaning.fine.encoder = Counted()
    second = Ranking([*MANY[1:], OFFICE[0]], meaning)
    assert second.rank("weather")[0].name == "weather.get_forecast"
    assert seen == [encoded_text(OFFICE[0]), "weather"]
    assert second.rank("weather in Oslo") == ranked([*MANY[1:], OFFICE[0]]).rank("weather in Oslo")


def test_nearness_is_the_same_with_and_without_stored_vectors():
    names = [spec.name for spec in OFFICE]
    stored, fresh = ranked(OFFICE), Ranking(OFFICE + MANY, SemanticModel())
    near = stored.index.nearness("will it rain in Paris", names)
    assert max(near, key=lambda name: near[name]) == "weather.get_forecast"
    assert fresh.index.nearness("will it rain in Paris", names) == pytest.approx(near, abs=1e-3)
    assert Ranking([]).index.nearness("anything", []) == {}


def test_threads_share_a_ranking():
    ranking, requests = ranked(OFFICE), ["send a mail", "weather", "read a file", "commits", "a task"] * 8
    alone = [ranking.rank(request) for request in requests]
    fresh = Ranking(OFFICE)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fresh.rank, requests)) == alone


def test_vectors_are_stored_for_their_owner_and_not_computed_twice(tmp_path: Path):
    path = tmp_path / "home" / "vectors.db"
    made = Vectors(sentence_encoder(), path).of(["a tool", "another"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    class Refusing:
        name, floor = sentence_encoder().name, 0.0

        def vectors(self, texts: list[str]) -> np.ndarray:
            raise AssertionError(texts)

    kept = Vectors(Refusing(), path).of(["a tool", "another"])
    assert made is not None
    assert kept is not None
    assert np.array_equal(made, kept)


def test_the_file_of_vectors_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("packetgate.reflex.meaning.encoder.MAX_STORED", 3)
    vectors = Vectors(sentence_encoder(), tmp_path / "vectors.db")
    for text in "abcde":
        vectors.of([text])
    with sqlite3.connect(tmp_path / "vectors.db") as file:
        assert file.execute("SELECT count(*) FROM vectors").fetchone() == (3,)


def test_a_broken_file_of_vectors_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "vectors.db").write_bytes(b"not a database" * 500)
    assert Vectors(sentence_encoder(), tmp_path / "vectors.db").of(["a tool"]) is not None
    assert "vectors.db" in caplog.text


def test_a_vector_does_not_depend_on_other_texts():
    long = "a long text of very many words that says a good deal " * 5
    for encoder in (SentenceEncoder(), StaticEncoder()):
        assert np.array_equal(encoder.vectors(["send a mail", long])[0], encoder.vectors(["send a mail"])[0])
        assert np.allclose(np.linalg.norm(encoder.vectors(["send a mail", long]), axis=1), 1, atol=1e-5)


def a_tree(rng: random.Random, depth: int) -> dict[str, Any]:
    """Return a tree in LightGBM's output format."""
    if depth == 0 or rng.random() < 0.2:
        return {"leaf_value": rng.uniform(-1, 1)}
    left, right = a_tree(rng, depth - 1), a_tree(rng, depth - 1)
    return {
        "split_feature": rng.randrange(5), "threshold": float(np.float32(rng.gauss(0, 1))),
        "left_child": left, "right_child": right,
    }  # fmt: skip


def walked(node: dict[str, Any], row: np.ndarray) -> float:
    while "leaf_value" not in node:
        node = node["left_child" if row[node["split_feature"]] <= node["threshold"] else "right_child"]
    return float(np.float32(node["leaf_value"]))


def test_trees_have_the_same_result_as_a_walk():
    rng = random.Random(1)
    told = {"tree_info": [{"tree_structure": a_tree(rng, 4)} for _ in range(60)]}
    rows = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
    sums = [sum(walked(one["tree_structure"], row) for one in told["tree_info"]) for row in rows]
    trees = trees_of(told)
    assert trees.scores(rows).tolist() == np.array(sums, np.float32).tolist()
    assert Trees.from_arrays(trees.arrays("a"), "a").scores(rows).tolist() == trees.scores(rows).tolist()
