"""Render questions for Discord: text that cannot add Markdown, and buttons."""

import io
from collections.abc import Mapping
from typing import Any, Literal, Self, cast, get_args

import discord
from discord.utils import escape_markdown, format_dt

from packetgate.connectors import rendering
from packetgate.connectors.discord.messages import code_block
from packetgate.connectors.sessions import expiry_of
from packetgate.connectors.turn import remember_words
from packetgate.state.packet import CognitionPacket

Action = Literal["approve", "reject", "session", "always", "trust", "never"]
EMBED_CHARS = 4_000
BLOCK_COLUMNS = 76
"""Widest line of a code block that the desktop client does not wrap."""
NOT_AUTHORISED = (
    "Only the person who asked, or an approver, can decide this, within the permissions of the person who asked."
)

_STYLES: Mapping[Action, tuple[str, discord.ButtonStyle]] = {
    "approve": ("Approve", discord.ButtonStyle.success),
    "reject": ("Reject", discord.ButtonStyle.danger),
    "session": ("This session", discord.ButtonStyle.success),
    "always": ("Always", discord.ButtonStyle.success),
    "trust": ("Trust", discord.ButtonStyle.success),
    "never": ("Never", discord.ButtonStyle.danger),
}


def requester_id(packet: CognitionPacket) -> int:
    """Return the id of the Discord user who started the turn; 0 if the turn was started elsewhere."""
    person = packet.header.person
    return int(person) if person.isdecimal() else 0


def calls_of(question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a question; empty if the question asks for text."""
    return [] if question.get("kind") == "question" else list(question.get("action_requests") or [])


def headline(question: Mapping[str, Any], asker: int) -> str:
    """Return the line above a question, which mentions the person who asked."""
    count, expiry = len(calls_of(question)), expiry_of(question)
    what = (
        "may this run?"
        if count == 1
        else f"may these {count} run?"
        if count
        else "I need to know (reply to this message):"
    )
    until = f" (until {format_dt(expiry)}, {format_dt(expiry, 'R')})" if expiry is not None else ""
    problem = str(question.get("problem") or "")
    return f"<@{asker}>, {what}{until}" + (f"\n⚠️ {escape_markdown(problem)[:800]}" if problem else "")


def question_parts(question: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a question's message: an embed, and for a long question a file with the whole question."""
    text = rendering.question(question, BLOCK_COLUMNS).plain
    block = code_block(text)
    if len(block) <= EMBED_CHARS:
        return {"embeds": [discord.Embed(description=block)]}
    cut = code_block(f"{text[: EMBED_CHARS // 4]}\n[…] complete in question.txt")
    file = discord.File(io.BytesIO(text.encode()), "question.txt")
    return {"embeds": [discord.Embed(description=cut)], "files": [file]}


class DecisionButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=rf"packetgate:(?P<action>{'|'.join(get_args(Action))}):(?P<question>[0-9a-f]{{32}}):(?P<first>[0-9]{{1,20}})",
):
    """A button of a question. Its id contains all data that a press needs after a restart of the bot.

    These are the action, the question, and the first message of the session (`session_of`).
    """

    def __init__(self, action: Action, question_id: str, first: str, label: str = "") -> None:
        text, style = _STYLES[action]
        custom_id = f"packetgate:{action}:{question_id}:{first}"
        super().__init__(discord.ui.Button(label=label or text, style=style, custom_id=custom_id))
        self.action: Action = action
        self.question_id, self.first = question_id, first

    @classmethod
    async def from_custom_id(cls, interaction: Any, item: Any, match: Any, /) -> Self:
        """Return the button that was pressed."""
        return cls(match["action"], match["question"], match["first"])

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Tell the bot about the press."""
        await interaction.client.decide(interaction, self)


def decision_buttons(question: Mapping[str, Any], first: str) -> discord.ui.View:
    """Return the buttons of a question; none if the question asks for words."""
    calls = calls_of(question)
    actions = cast("list[Action]", ["approve", "reject", *remember_words(question)])
    view = discord.ui.View(timeout=None)
    for action in actions if calls else ():
        is_for_all = len(calls) > 1 and action in {"approve", "reject"}
        label = f"{_STYLES[action][0]} all" if is_for_all else ""
        view.add_item(DecisionButton(action, str(question.get("question_id")), first, label))
    return view


def reply_of(action: Action, question: Mapping[str, Any]) -> tuple[object, str]:
    """Return the reply that a button stands for, and the line that reports it."""
    if action in {"approve", "reject"}:
        outcome = "✅ Approved" if action == "approve" else "⛔ Rejected"
        return {"decisions": [{"type": action}] * len(calls_of(question))}, outcome
    return action, f"{'⛔ Never' if action == 'never' else '✅ Approved'}, and remembered ({action})"
