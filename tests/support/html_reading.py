"""Parse HTML: its elements, its text, and the resources that it would load."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


@dataclass
class Page(HTMLParser):
    """The content of a page."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> without a beginning"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def read_html(source: str) -> Page:
    """Return the page's content; elements must be closed in order."""
    page = Page()
    page.feed(source)
    page.close()
    assert not page._open
    return page
