"""The answer in `packetgate chat`, as a model writes it, and what Ctrl-C does in the middle."""

import pytest
from support.command_line import CommandLine
from support.prompts import NO_TOOL
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import CutOff, Stall
from support.terminals import KEYS, Terminal, chatting, leave, said

MODELS = ("--lite", "openai:scripted")


@pytest.fixture
def endpoint(scripted_openai: ScriptedOpenAI) -> dict[str, str]:
    streaming = {"PACKETGATE_PRIME_ENABLE_THINKING": "false"}  # else its first words wait until it is known
    return {"OPENAI_BASE_URL": scripted_openai.base_url, "NO_PROXY": "127.0.0.1", **streaming}


def ask(child: Terminal) -> None:
    child.sendline("Who opens the gate?")
    child.expect("detect_intent: ")


def test_the_answer_is_shown_once(cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]) -> None:
    scripted_openai.script(NO_TOOL, "The keeper opens it.\x1b]0;owned\x07 <tool_call>{}</tool_call> At seven.")
    with chatting(cli, *MODELS, **endpoint) as child:
        ask(child)
        child.expect("you> ")
        assert "The keeper opens it.\ufffd]0;owned\ufffd" in said(child)
        assert said(child).count("The keeper") == said(child).count("At seven") == 1
        assert "tool_call" not in said(child)
        assert "\x1b]0;" not in (child.before or "")
        assert leave(child) == 0


def test_it_is_shown_while_it_is_written_and_ctrl_c_keeps_the_session(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]
) -> None:
    """The model stalls: what stands there by then was streamed."""
    scripted_openai.script(NO_TOOL, Stall("The keeper opens it, "), NO_TOOL, "At seven.", NO_TOOL, "As I said.")
    with chatting(cli, *MODELS, **endpoint) as child:
        ask(child)
        child.expect("The keeper opens")
        child.send(KEYS["Ctrl-C"])
        child.expect("stopped: /continue")
        child.expect("you> ")
        child.sendline("When?")
        child.expect(r"At seven\.")
        child.expect("you> ")
        child.sendline("When again?")
        child.expect(r"As I said\.")
        child.expect("you> ")
        assert leave(child) == 0
    earlier = [message["content"] for message in scripted_openai.requests[-1]["messages"]]
    assert any("Who opens the gate?" in text for text in earlier)
    assert any("At seven." in text for text in earlier)
    assert not any("The keeper opens" in text for text in earlier)


def test_sigterm_ends_it_also_in_the_middle_of_a_turn(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]
) -> None:
    scripted_openai.script(NO_TOOL, Stall("The keeper opens it, "))
    with chatting(cli, *MODELS, **endpoint) as child:
        ask(child)
        child.expect("The keeper opens")
        child.terminate()
        assert child.wait() == 143


def test_sigterm_ends_it_at_its_prompt(cli: CommandLine) -> None:
    with chatting(cli) as child:
        child.terminate()
        assert child.wait() == 143


def test_a_stopped_turn_can_be_gone_on_with(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]
) -> None:
    scripted_openai.script(NO_TOOL, Stall("The keeper opens it, "), "The keeper does.")
    with chatting(cli, *MODELS, **endpoint) as child:
        ask(child)
        child.expect("The keeper opens")
        child.send(KEYS["Ctrl-C"])
        child.expect("you> ")
        child.sendline("/continue")
        child.expect(r"The keeper does\.")
        child.expect("you> ")
        assert leave(child) == 0


def test_what_broke_off_gives_way_to_the_answer(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, endpoint: dict[str, str]
) -> None:
    scripted_openai.script(NO_TOOL, CutOff("The keeper opens it, "))
    with chatting(cli, *MODELS, **endpoint) as child:
        ask(child)
        child.expect("The keeper opens")
        child.expect_exact("\r\x1b[J")
        child.expect("rule-based fallback answered. /why")
        child.expect("you> ")
        assert leave(child) == 0
