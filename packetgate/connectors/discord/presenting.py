"""Render questions and long answers for Discord. All content is escaped: it cannot add Markdown."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import discord
from discord.utils import escape_markdown, format_dt

from packetgate.state.printing import escaped

LIMIT = 2_000
"""Most characters of a message."""
LONGEST_OPENING = 40
"""Longest fence with its language; a longer one is reopened without the language."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*(.*)")


def split(text: str, limit: int = LIMIT) -> list[str]:
    """Split the text into pieces of at most `limit` characters, none of them blank.

    The cut is between lines where possible. A code block that continues in the next piece is closed at the end of one
    and opened again, with its language, at the beginning of the next.
    """
    pieces: list[str] = []
    lines: list[str] = []
    opening, is_new = "", False
    for line, goes_on in _short_lines(text, limit - 2 * (LONGEST_OPENING + 1)):
        after = opening if goes_on else _after(opening, line)
        closing = f"\n{_mark(after)}" if after else ""
        if lines and (goes_on or len("\n".join([*lines, line])) + len(closing) > limit):
            pieces.append(_closed(lines, opening, is_new=is_new))
            lines = [opening] if opening else []
        lines.append(line)
        opening, is_new = after, bool(after) and not opening
    pieces.append(_closed(lines, opening))
    return [piece for piece in pieces if piece.strip()]


def harmless(text: str) -> str:
    """Return text that cannot close a code block; applying this twice changes nothing."""
    return re.sub("`{3,}", lambda marks: "\u200b".join(marks[0]), text)


def code_block(text: str, language: str = "") -> str:
    """Return text as a code block that nothing in it can close."""
    return f"```{language}\n{harmless(text)}\n```"


def _closed(lines: list[str], opening: str, *, is_new: bool = False) -> str:
    if is_new:
        return "\n".join(lines[:-1])
    return "\n".join([*lines, _mark(opening)] if opening else lines)


def _short_lines(text: str, longest: int) -> Iterator[tuple[str, bool]]:
    for whole in text.split("\n"):
        line, goes_on = whole, False
        while len(line) > longest:
            space = line.rfind(" ", longest // 2, longest)
            end = space + 1 if space > 0 else longest
            yield line[:end], goes_on
            line, goes_on = line[end:], True
        yield line, goes_on


def _after(opening: str, line: str) -> str:
    found = _FENCE.fullmatch(line)
    if found is None:
        return opening
    mark, language = found.groups()
    if opening:
        closes = mark[0] == _mark(opening)[0] and len(mark) >= len(_mark(opening)) and not language
        return "" if closes else opening
    if "`" in language:
        return ""
    return next((one for one in (mark + language, mark) if len(one) <= LONGEST_OPENING), mark[:3])


def _mark(opening: str) -> str:
    return opening[: len(opening) - len(opening.lstrip(opening[0]))]


Action = Literal["approve", "edit", "reject", "answer", "session", "always", "never", "edited", "answered"]
"""The action of a button; the last two are of forms."""

REMEMBERED: tuple[Action, ...] = ("session", "always", "never")
"""Answers that are remembered for further calls, in the words that a user would type."""

EMBEDS = 10
LONGEST_EMBED = 4_000
TITLE_CHARS = 60
EMBED_CHARS = 6_000 - EMBEDS * TITLE_CHARS
"""Characters that all embeds of a message share, without their titles."""
FIELDS = 5
"""Most inputs of a form."""
INPUT_CHARS = 4_000

FENCES = 40
"""Characters of the fences of two code blocks."""
CUT = "\n[…] whole in calls.json"

_ID = re.compile(
    r"packetgate:(approve|edit|reject|answer|session|always|never|edited|answered):(\d{1,20}):([0-9a-f]{32})"
)


@dataclass(frozen=True)
class Press:
    """A button or form: its action, the user whose turn it is, and the question. All are encoded in its id."""

    action: Action
    asker: int
    key: str

    @property
    def id(self) -> str:
        """The custom id, which Discord keeps with the message."""
        return f"packetgate:{self.action}:{self.asker}:{self.key}"

    @classmethod
    def of(cls, custom_id: object) -> "Press | None":
        """Parse a custom id, or return None."""
        found = _ID.fullmatch(custom_id) if isinstance(custom_id, str) else None
        return cls(found[1], int(found[2]), found[3]) if found else None  # type: ignore[arg-type]

    def form(self) -> "Press":
        """Return the press of the form that this button opens."""
        return Press("edited" if self.action == "edit" else "answered", self.asker, self.key)


def requests_of(question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a question."""
    requests = question.get("action_requests")
    return [one for one in requests if isinstance(one, dict)] if isinstance(requests, list) else []


def is_plain(question: Mapping[str, Any]) -> bool:
    """Whether a question asks for words only."""
    return question.get("kind") == "question"


def headline(question: Mapping[str, Any], asker: int, lapses: datetime | None) -> str:
    """Return the line above the embeds; mentions in it do not notify anybody."""
    count = len(requests_of(question))
    what = "I need to know:" if is_plain(question) else "may this run?" if count == 1 else f"may these {count} run?"
    until = f" (until {format_dt(lapses)}, {format_dt(lapses, 'R')})" if lapses is not None else ""
    problem = str(question.get("problem") or "")
    return f"<@{asker}>, {what}{until}" + (f"\n⚠️ {escape_markdown(problem)[:800]}" if problem else "")


def parts(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return one embed per call, and the calls as a file if they do not fit in the embeds."""
    if is_plain(question):
        return {"embeds": [discord.Embed(description=escape_markdown(str(question.get("question", "")))[:4_000])]}
    requests = requests_of(question)
    room = min(EMBED_CHARS // min(len(requests) or 1, EMBEDS), LONGEST_EMBED)
    shown = [_embed(request, room) for request in requests[:EMBEDS]]
    whole = len(requests) <= EMBEDS and all(fits for _, fits in shown)
    embeds = [embed for embed, _ in shown]
    if whole:
        return {"embeds": embeds}
    data = escaped(_json([_call(request) for request in requests])).encode()
    return {"embeds": embeds, "attachments": [discord.File(io.BytesIO(data), "calls.json")]}


def buttons(question: Mapping[str, Any], asker: int, key: str) -> discord.ui.View:
    """Return the buttons. Their ids hold all that is needed to handle them after a restart."""
    requests = requests_of(question)
    every = " all" if len(requests) > 1 else ""
    styles = discord.ButtonStyle
    offered: dict[Action, tuple[str, discord.ButtonStyle]] = {
        "approve": (f"Approve{every}", styles.success),
        "edit": ("Edit", styles.secondary),
        "reject": (f"Reject{every}", styles.danger),
        "answer": ("Answer", styles.secondary),
        "session": ("This session", styles.success),
        "always": ("Always", styles.success),
        "never": ("Never", styles.danger),
    }
    left_out = {"approve", "edit", "reject"} if is_plain(question) else set() if _fits_a_form(requests) else {"edit"}
    left_out |= {
        word for word in REMEMBERED if not requests or any(word not in one.get("remember", ()) for one in requests)
    }
    view = discord.ui.View(timeout=None)
    for action, (label, style) in offered.items():
        if action not in left_out:
            view.add_item(discord.ui.Button(label=label, style=style, custom_id=Press(action, asker, key).id))
    view.stop()  # nothing is kept for it: what is pressed is known by the id alone
    return view


def form(question: Mapping[str, Any], press: Press) -> discord.ui.Modal:
    """Return the form of a button: the arguments as JSON, or a field for words."""
    if press.action == "answer":
        modal = discord.ui.Modal(title="Your answer", custom_id=press.form().id)
        modal.add_item(_input("In your words", "0", required=True))
    else:
        modal = discord.ui.Modal(title="Arguments, as JSON", custom_id=press.form().id)
        for number, request in enumerate(requests_of(question)):
            label = f"{request.get('name')} (empty: do not run)"
            modal.add_item(_input(label, str(number), default=_json(_args(request))))
    modal.stop()
    return modal


def written(data: Mapping[str, Any]) -> list[str]:
    """Return the texts of a form's fields, in order."""
    inputs = [part for row in data.get("components", ()) for part in (row.get("components") or [row.get("component")])]
    return [str(part.get("value", "")) for part in inputs if isinstance(part, dict)]


def _input(label: str, name: str, default: str = "", *, required: bool = False) -> discord.ui.TextInput[Any]:
    return discord.ui.TextInput(
        label=label[:45],
        custom_id=name,
        style=discord.TextStyle.paragraph,
        default=default or None,
        required=required,
        max_length=INPUT_CHARS,
    )


def _fits_a_form(requests: list[dict[str, Any]]) -> bool:
    return len(requests) <= FIELDS and all(len(_json(_args(request))) <= INPUT_CHARS for request in requests)


def _embed(request: Mapping[str, Any], room: int) -> tuple[discord.Embed, bool]:
    fields = {"about": request.get("description"), **request}
    name, about, preview = (escaped(str(fields.get(part) or "")) for part in ("name", "about", "preview"))
    about = "\n".join([*map(_warning, request.get("warnings") or ()), escape_markdown(about)])
    preview, arguments = harmless(preview), harmless(escaped(_json(_args(request))))
    room -= FENCES
    rooms = [room // 3, room // 3 if preview else 0]
    rooms.append(room - min(len(about), rooms[0]) - min(len(preview), rooms[1]))
    shown = [_cut(text, most) for text, most in zip((about, preview, arguments), rooms, strict=True)]
    blocks = [code_block(shown[2], "json"), *[code_block(shown[1], "diff")] * bool(preview), shown[0]]
    title = name if len(name) <= TITLE_CHARS else f"{name[: TITLE_CHARS - 1]}…"
    embed = discord.Embed(title=title, description="\n".join(blocks))
    return embed, [title, *shown] == [name, about, preview, arguments]


def _warning(warning: Mapping[str, str]) -> str:
    """Return a warning with the marked part of its passage in bold; the passage is code, so that it has no links."""
    what = f"`{_inline(warning['argument'])}`: " if warning.get("argument") else ""
    sentence, marked = (_inline(str(warning.get(part) or "")) for part in ("sentence", "marked"))
    before, found, after = (sentence or marked).partition(marked) if marked else (sentence, "", "")
    parts = (before and f"`{before}`", found and f"**`{found}`**", after and f"`{after}`")
    passage = " ".join(part for part in parts if part.strip("`* "))
    return f"⚠️ {what}{escape_markdown(str(warning.get('why', '')))}" + (f"\n> {passage}" if passage else "")


def _inline(text: str) -> str:
    return escaped(" ".join(text.split())).replace("`", "\N{MODIFIER LETTER GRAVE ACCENT}")


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(0, room - len(CUT))]}{CUT}"


def _args(request: Mapping[str, Any]) -> Any:
    return request.get("args", request.get("arguments", {}))


def _call(request: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: request[name] for name in ("name", "about", "preview", "warnings") if request.get(name)}
    return {**kept, "arguments": _args(request)}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
