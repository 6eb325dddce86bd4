"""Plug-ins register their parts by entry point or by argument. A broken plug-in does not affect other plug-ins."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from contract.doors import GATES, Setup, open_door
from contract.model import ScriptedModel
from contract.office import Office
from contract.rows import WRITES, mail, note
from langchain_core.language_models import FakeListChatModel
from support.command_line import CommandLine

from packetgate import plugins
from packetgate.deciders.advice import Advisers, Score
from packetgate.deciders.protocols import Selection
from packetgate.gate.facts import Facts
from packetgate.models import kinds
from packetgate.models.kinds import ModelKind, ModelSetup, known_kinds
from packetgate.models.model import Model
from packetgate.models.options import ModelOptions, Role
from packetgate.plugins import GROUP, Plugin, installed, with_plugins
from packetgate.ranking.bm25 import Lexical, ScoredRequest
from packetgate.ranking.ranking import ranking_of
from packetgate.router import create_router
from packetgate.state.errors import ConfigError, InputError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, Verdict
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.functions import FunctionServer
from packetgate.toolsets.servers.server import Server


@dataclass
class LastFirst:
    """A ranker that prefers the last name."""

    seen: list[str] = field(default_factory=list)

    def kept_in(self, file: Path) -> "LastFirst":
        return self

    def index(self, specs: Mapping[str, ToolSpec], lexical: Lexical) -> "LastFirst":
        self.seen = sorted(specs)
        return self

    def scores(self, request: ScoredRequest) -> Mapping[str, float]:
        return {name: (at + 1) / len(self.seen) for at, name in enumerate(self.seen)}


class Proposing:
    """A proposer and scorer with fixed answers."""

    def __init__(self, confidence: float) -> None:
        self._confidence = confidence

    def propose(self, packet: CognitionPacket, catalogue: Catalogue) -> Selection:
        return Selection(action="call", confidence=self._confidence)

    def likely_tools(self, packet: CognitionPacket, catalogue: Catalogue) -> Sequence[Mapping[str, float]]:
        return [{"a.b": self._confidence, "c.d": 0.1}]

    def score(self, calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue) -> Sequence[Score]:
        return [Score({"judged": self._confidence}, (f"{self._confidence}",)) for _ in calls]


class Greetings:
    """A toolset."""

    def servers(self, root: Path) -> Sequence[Server]:
        def greet(name: str) -> str:
            """Greet somebody by name."""
            return f"Good day, {name}!"

        return [FunctionServer("manners", [greet])]


def no_mail(call: ToolCall, facts: Facts) -> Verdict | None:
    """Refuse mails."""
    is_mail = call.tool_name.endswith(".send_mail")
    return Verdict(effect="refuse", why="no mail leaves this house") if is_mail else None


class EchoKind(ModelKind):
    """Models that answer with their name."""

    forms, prefixes, takes = ("echo:NAME",), ("echo",), ()

    def parse(self, prefix: str, name: str, role: Role, options: ModelOptions) -> ModelSetup:
        return ModelSetup(prefix, name, name, options)

    async def check(self, setup: ModelSetup) -> None:
        pass

    def open(self, setup: ModelSetup) -> Model:
        return Model(FakeListChatModel(responses=[f"I am {setup.name}."]))

    def identity(self, setup: ModelSetup) -> Sequence[str]:
        return (setup.name,)


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The entry points that Packetgate finds, without its own."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    monkeypatch.setitem(sys.modules, "test_plugins", sys.modules[__name__])
    installed.cache_clear()
    yield points
    installed.cache_clear()


PLUGIN = Plugin("house", checks=[no_mail], model_kinds=[EchoKind()])
GOOD, TWIN = Plugin("good", rankers=[LastFirst()]), Plugin("good")
NAMELESS, ODD = SimpleNamespace(rankers=[]), SimpleNamespace(name="odd", rankers=LastFirst())
ABSENT = Plugin("absent", needs=["no_such_module"], install="pip install absent")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module:PLUGIN", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("test_plugins:NO_SUCH", "has no attribute 'NO_SUCH'"),
        ("test_plugins:NAMELESS", "has no name"),
        ("test_plugins:TWIN", "another plug-in has the name 'good'"),
        ("test_plugins:ODD", "rankers is no list"),
        ("test_plugins:ABSENT", "left out: no_such_module cannot be imported: pip install absent"),
    ],
)
def test_a_bad_entry_point_is_one_line_and_does_not_affect_the_others(
    entry_points: list[EntryPoint], value: str, problem: str
):
    entry_points += [EntryPoint("a", "test_plugins:GOOD", GROUP), EntryPoint("b", value, GROUP)]
    found = installed()
    assert list(found.by_name) == ["good"]
    (line,) = found.problems
    assert line.startswith(f"b ({value}): ")
    assert problem in line
    assert "\n" not in line
    assert found.parts("rankers") == tuple(GOOD.rankers)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([NAMELESS], "has no name"),
        ([GOOD, TWIN], "another plug-in has the name 'good'"),
        ([ABSENT], "no_such_module cannot be imported"),
        ([Plugin("words", checks=["no mail"])], "words: str is no Check, as checks must be"),
        ([Plugin("wrong", scorers=[LastFirst()])], "wrong: LastFirst is no Scorer, as scorers must be"),
    ],
)
def test_a_bad_argument_is_an_error(given: list[Any], problem: str):
    with pytest.raises(ConfigError, match=problem.replace("[", r"\[")):
        create_router(plugins=given)
    assert issubclass(ConfigError, InputError)


def test_a_part_of_the_wrong_form_is_skipped_and_reported(entry_points: list[EntryPoint]):
    found = plugins.Plugins({"mixed": Plugin("mixed", rankers=[object(), LastFirst()])})
    assert [type(part) for part in found.parts("rankers")] == [LastFirst]
    assert found.wrong_parts() == ["mixed: object is no Ranker, as rankers must be"]


def test_arguments_precede_installed_plug_ins_and_replace_those_of_the_same_name():
    ours = Plugin("reflex", proposers=[Proposing(0.4)])
    assert with_plugins([ours]).by_name["reflex"] is ours
    both = with_plugins([Plugin("mine", rankers=[LastFirst()])])
    assert list(both.by_name) == ["mine", *installed().by_name]
    assert isinstance(both.part("rankers"), LastFirst)
    assert with_plugins([]) is installed()


@pytest.mark.reflex
def test_the_core_registers_its_own_rules_in_the_same_way():
    assert installed().problems == ()
    assert installed().wrong_parts() == []
    assert {
        kind: len(installed().parts(kind)) for kind in ("rankers", "proposers", "scorers", "judges", "deciders")
    } == {
        "rankers": 1,
        "proposers": 1,
        "scorers": 1,
        "judges": 1,
        "deciders": 1,
    }


def test_the_surest_proposal_and_the_evidence_of_all_scorers_count():
    advisers = Advisers((Proposing(0.2), Proposing(0.6)), (Proposing(0.2), Proposing(0.6)))
    packet, catalogue = CognitionPacket(), Catalogue()
    proposal = advisers.propose(packet, catalogue)
    assert proposal is not None
    assert proposal.confidence == 0.6
    assert advisers.likely_tools(packet, catalogue) == ["a.b", "c.d"]
    assert advisers.probability_of_tool(packet, catalogue) == pytest.approx(0.7)
    (score,) = advisers.scores([ToolCall(tool_name="a.b")], packet, catalogue)
    assert score == ({"judged": 0.6}, ("0.2", "0.6"))


def test_a_router_uses_a_toolset_and_a_ranker(tmp_path: Path):
    ranker = LastFirst()
    plugin = Plugin("mine", toolsets=[Greetings()], rankers=[ranker])
    with create_router(plugins=[plugin], root=tmp_path) as router:
        catalogue = router._loop.run(router._tools.catalogue())
        assert "manners.greet" in catalogue
        assert ranking_of(catalogue).rank("anything")[0].name == max(catalogue)


@pytest.mark.parametrize("door", GATES)
async def test_the_check_of_an_installed_plug_in_holds_at_every_door(
    entry_points: list[EntryPoint], tmp_path: Path, door: str
):
    entry_points.append(EntryPoint("house", "test_plugins:PLUGIN", GROUP))
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        mailed = await opened.turn([mail()], words="Write to mia@example.org: it is late")
        noted = await opened.turn([note()], words="Write avocado into note a", answers=["approve"], thread="two")
    assert (mailed.ran, mailed.asked) == ([], [])
    assert "no mail leaves this house" in mailed.output
    assert [name for name, _ in noted.ran] == ["write_note"]


@pytest.mark.parametrize("given", [{"checks": [no_mail]}, {"plugins": [PLUGIN]}])
def test_a_check_of_an_argument_refuses_a_call(tmp_path: Path, given: dict[str, Any]):
    office, model = Office(), ScriptedModel(steps=[[mail()]], prompts=[])
    with create_router(model, [office.server()], settings=WRITES, root=tmp_path, **given) as router:
        turn = router.invoke("Write to mia@example.org: it is late")
    assert turn.question is None
    assert office.made == []
    assert "no mail leaves this house" in model.prompts[-1]


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_model_kind_of_a_plug_in_answers(
    entry_points: list[EntryPoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_installed: bool
):
    monkeypatch.setattr(kinds, "known_kinds", cache(known_kinds.__wrapped__))
    if is_installed:
        entry_points.append(EntryPoint("house", "test_plugins:PLUGIN", GROUP))
    with create_router("echo:Ada", root=tmp_path, plugins=[] if is_installed else [PLUGIN]) as router:
        assert router.invoke("Which house is this?").answer == "I am Ada."


def test_an_installed_command_runs_and_a_broken_one_is_one_line(cli: CommandLine, tmp_path: Path):
    package = tmp_path / "site"
    (package / "weather-1.dist-info").mkdir(parents=True)
    (package / "weather-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: weather\nVersion: 1\n")
    (package / "weather-1.dist-info" / "entry_points.txt").write_text(
        "[packetgate.commands]\nforecast = weather:FORECAST\nask = weather:FORECAST\n"
        "broken = weather:NOTHING\nplain = weather:forecast\n"
    )
    (package / "weather.py").write_text(
        "from packetgate.plugins import Command\n"
        "FORECAST = Command('weather:forecast', 'Print the weather.')\n"
        "def forecast(town: str) -> int:\n"
        "    print('rain in', town)\n"
        "    return 0\n"
    )
    done = cli.start("forecast", "Bergen", PYTHONPATH=str(package))
    assert (done.status, done.out) == (0, "rain in Bergen\n"), done.err
    help_of_all = cli.start("--help", PYTHONPATH=str(package)).out
    assert "Print the weather." in help_of_all
    assert "Run one turn" in help_of_all
    broken = cli.start("broken", PYTHONPATH=str(package))
    assert broken.status == 2
    assert "weather:NOTHING" in broken.err
    plain = cli.start("plain", PYTHONPATH=str(package))
    assert plain.status == 2
    assert "function is no packetgate.plugins.Command" in plain.err.replace("\n", " ")
