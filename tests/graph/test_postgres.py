"""Sessions in PostgreSQL."""

from collections.abc import Iterator

import pytest
from support.command_line import CommandLine
from support.postgres import serve_postgres

from graph.settings import Settings
from graph.storage import open_checkpointer
from state.errors import ConfigError


@pytest.fixture(scope="module")
def database_url() -> Iterator[str]:
    with serve_postgres() as url:
        yield url


def test_a_conversation_and_a_question_survive_the_process(cli: CommandLine, database_url: str) -> None:
    def run(*args: str) -> tuple[int, str]:
        outcome = cli.run(*args, "--session", "s", PACKETGATE_DATABASE_URL=database_url)
        assert outcome.err == ""
        return outcome.status, outcome.out

    assert run("ask", "Read plan.txt")[0] == 0
    assert run("ask", 'Write "seven" to new.txt', "--allow-writes")[0] == 3
    assert not (cli.folder / "new.txt").exists()
    assert run("answer", "yes")[0] == 0
    assert (cli.folder / "new.txt").read_text() == "seven"
    status, packet = run("ask", "Hello", "--json")
    assert status == 0
    assert "The gate opens at seven." in packet  # kept in the ledger
    assert not (cli.home / "packetgate.db").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:hunter2@127.0.0.1:9/none", "PACKETGATE_DATABASE_URL: the database cannot be reached: "),
        ("mysql://me:hunter2@127.0.0.1/none", "PACKETGATE_DATABASE_URL is no PostgreSQL URL: use postgresql://"),
    ],
)
async def test_an_unusable_database_is_one_line_without_the_password(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        async with open_checkpointer(Settings(database_url=url)):
            pass
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
