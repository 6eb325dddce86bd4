"""`packetgate undo` and "undo that" in a turn use the same gate, question and journal as every write."""

from support.command_line import CommandLine


def _write(cli: CommandLine, text: str, *options: str, session: str = "s") -> None:
    asked = cli.run("ask", "--session", session, "--allow-writes", text, *options)
    assert asked.status == 3, asked
    assert cli.run("answer", "--session", session, "yes").status == 0


def test_the_last_change_is_undone_after_approval(cli: CommandLine) -> None:
    _write(cli, 'Write "hello" to notes.txt')
    file = cli.folder / "notes.txt"
    assert "creation of notes.txt" in cli.run("undo", "--list").out
    dry = cli.run("undo")
    assert dry.status == 0
    assert "write tools are switched off" in dry.out
    asked = cli.run("undo", "--allow-writes")
    assert asked.status == 3
    assert "delete notes.txt" in asked.out
    assert "Warning" not in asked.out
    assert file.read_text() == "hello"
    assert "Undid creation of notes.txt" in cli.run("answer", "--session", "s", "yes").out
    assert not file.exists()
    assert cli.run("undo", "--list").out == f"No change below {cli.folder.resolve()} is in effect.\n"
    assert cli.run("undo", "--allow-writes").status == 2


def test_a_policy_rule_about_the_path_holds_for_the_undo(cli: CommandLine) -> None:
    _write(cli, 'Write "hello" to notes.txt')
    rule = '[[policy.rules]]\neffect = "deny"\ntool = "ai.undo"\narguments = { path = "notes.*" }\n'
    (cli.folder / "packetgate.toml").write_text(rule)
    refused = cli.run("undo", "--allow-writes")
    assert "is denied by a policy rule" in refused.out
    assert (cli.folder / "notes.txt").exists()


def test_an_unknown_change_is_refused(cli: CommandLine) -> None:
    outcome = cli.run("undo", "0123abcd", "--allow-writes")
    assert outcome.status == 2
    assert "packetgate undo --list" in outcome.err
