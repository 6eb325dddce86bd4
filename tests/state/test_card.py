"""A packet in a notebook: its data appears only as text."""

from html.parser import HTMLParser

from support.full_packet import full_packet

from packetgate.state import sections as s
from packetgate.state.base import ConfidenceSource
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus

HIDDEN = "\u202e\u2066\u00ad\x1b"
HOSTILE = f"</pre></style><script>alert(1)</script>\"'><img src=//evil.test/x onerror=alert(1)>&lt;b&gt;{HIDDEN}[2J"
CALL = ToolCall(
    tool_name="files.write_file",
    params={"text": "x"},
    risk=Risk.EXECUTE,
    status=ToolExecutionStatus.UNKNOWN,
    provenance={"text": Origin(kind=OriginKind.TEXT, tool="files.read_file", is_flagged=True)},
    review_confidence=0.7,
    review_confidence_source=ConfidenceSource.STATED,
    result=ToolResult(success=True, output="the text", dry_run=True),
)
CHOSE = s.Reflection(
    step="select",
    summary="chose",
    confidence=0.5,
    confidence_source=ConfidenceSource.MEASURED,
    decided_by="reflex",
    latency_ms=0.1,
)
PACKET = CognitionPacket(
    content=s.Content(original_prompt="write it"),
    reasoning=s.Reasoning(reflection_log=(CHOSE,)),
    metrics=s.Metrics(errors=(s.StageError(stage="respond", message="late"),)),
    status=s.Status(state=s.PacketState.AWAITING_USER),
    response=s.Response(candidate="Done."),
    tool_routing=ToolRouting(calls=(CALL,)),
)


class Page(HTMLParser):
    """The tags, attributes and text of a page, without its style."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.text += data if self.tags[-1:] != ["style"] else ""


def test_a_card_shows_stages_calls_answer_and_problems() -> None:
    text = Page(PACKET._repr_html_()).text
    parts = [
        *("write it", "awaiting user", "select", "chose", "0.50", "0.1 ms", "files.write_file", "execute"),
        *("unknown (dry run)", "from the text that files.read_file returned", "~0.70", "Done.", "late"),
    ]
    assert [part for part in parts if part not in text] == []
    assert "table" not in Page(CognitionPacket()._repr_html_()).tags


def test_hostile_data_stays_text_and_loads_nothing() -> None:
    source = full_packet(HOSTILE)._repr_html_()
    hostile, harmless = Page(source), Page(full_packet("n" * len(HOSTILE))._repr_html_())
    assert (hostile.tags, hostile.attributes) == (harmless.tags, [])
    assert hostile.text.count("<script>alert(1)</script>") > 10
    assert {"script", "link", "img", "iframe"}.isdisjoint(hostile.tags)
    assert not set(HIDDEN) & set(source)


def test_a_card_has_a_limited_size_for_any_tool_output() -> None:
    long, longer = (full_packet("<" * length)._repr_html_() for length in (20_000, 60_000))
    assert len(long) == len(longer)
