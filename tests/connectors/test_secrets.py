"""Packetgate stores no secret that it recognises by value, shape or name."""

from support.command_line import CommandLine
from support.plain_server import configure, entry

VALUE, FILLED, NAMED, SHAPED = "zebra-crossing-77", "filled-in-value-88", "named-99-value", "ghp_" + "b2" * 18
SERVER = f"""
@server.reading
async def get_diary():
    "Get the diary."
    print("log says", os.environ["GIVEN"], {SHAPED!r}, file=sys.stderr, flush=True)
    return f"it holds {{os.environ['GIVEN']}} and {VALUE} and {SHAPED}"

@server.reading
async def get_almanac():
    "Get the almanac."
    raise SystemExit("cannot use " + os.environ["GIVEN"])
"""


def test_no_secret_is_stored_or_printed(cli: CommandLine) -> None:
    configure(cli.folder / "mcp.json", builtin=True, leak=entry(SERVER, env={"GIVEN": "${LEAKED_VALUE}"}, sandbox=None))
    (cli.folder / "config.env").write_text(f"PORT=8080\nAPI_TOKEN={NAMED}\nNOTE={VALUE}\n")
    variables = {"A_TEST_API_KEY": VALUE, "LEAKED_VALUE": FILLED}

    done = [
        cli.run("ask", "--session", "s", "Read config.env", **variables),
        cli.run("ask", "--session", "s", "Get the diary with leak.get_diary", **variables),
        cli.run("ask", "--session", "s", "--json", "Get the almanac with leak.get_almanac", **variables),
        cli.run("trace", "last", **variables),
    ]
    assert "PORT=8080" in done[0].out
    assert "API_TOKEN=[redacted: API_TOKEN]" in done[0].out
    assert "NOTE=[redacted: A_TEST_API_KEY]" in done[0].out
    assert "it holds" in done[1].out
    assert "[redacted: GitHub token]" in done[1].out
    kept = [file for file in cli.home.rglob("*") if file.is_file()]
    assert {"packetgate.db", "leak.log"} <= {file.name for file in kept}
    log = (cli.home / "logs" / "leak.log").read_text()
    assert "log says" in log or "cannot use" in log
    for secret in (VALUE, FILLED, NAMED, SHAPED):
        assert not [one for one in done if secret in one.out + one.err]
        assert not [file.name for file in kept if secret.encode() in file.read_bytes()]


def test_a_redaction_mark_is_never_written(cli: CommandLine) -> None:
    config = cli.folder / "config.env"
    config.write_text(f"API_TOKEN={NAMED}\n")
    words = "Write 'API_TOKEN=[redacted: API_TOKEN]' to config.env"
    asked = cli.run("ask", "--session", "s", "--allow-writes", words)
    assert config.read_text() == f"API_TOKEN={NAMED}\n"
    assert "the call would replace the secret by the placeholder" in asked.out
