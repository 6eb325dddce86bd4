"""A saved page in Chromium: it loads nothing, opens by keyboard, is legible, and shows hostile text as text."""

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from support.browser import Browser, Scheme
from support.hostile_packet import HIDDEN
from support.traced_turns import approved_turn, hostile_turn

pytestmark = pytest.mark.xdist_group("chromium")

STAGES = [
    *("open_packet", "detect_intent", "build_palette", "select_tool", "review_selection", "execute_tool"),
    *("inject_result", "detect_intent", "build_palette", "select_tool", "review_selection", "ask_user"),
    *("execute_tool", "inject_result", "detect_intent", "build_palette", "select_tool", "respond"),
]
LEGIBLE = 4.5
"""The contrast that WCAG 2 asks for at level AA."""
OPEN_ALL = "document.querySelectorAll('details').forEach(one => one.open = true)"


@pytest.fixture(scope="session", autouse=True)
def no_proxy() -> "pytest.MonkeyPatch":
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        yield patch


@pytest.fixture(scope="session")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return approved_turn(tmp_path_factory.mktemp("approved"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_turn(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(params=["approved", "hostile"])
def either(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def test_it_loads_nothing_and_the_console_stays_empty(browser: Browser, either: Path) -> None:
    browser.open(either)
    browser.run(OPEN_ALL)
    assert browser.requested == [either.as_uri()]
    assert browser.complaints == []


def test_its_policy_would_stop_what_got_in(browser: Browser, approved: Path) -> None:
    browser.open(approved)
    for tag, field, value in (("img", "src", "http://127.0.0.1:9/x"), ("script", "text", "window.ran = true")):
        browser.run(f"document.body.append(Object.assign(document.createElement('{tag}'), {{{field}: '{value}'}}))")
    refused = "\n".join(browser.complaints)
    assert "127.0.0.1:9" in refused
    assert refused.count("Content Security Policy") >= 2
    assert browser.run("return window.ran === undefined")


def test_the_timeline_is_in_order_and_inside_its_chart(browser: Browser, approved: Path) -> None:
    browser.open(approved)
    assert [one.text for one in browser.all(".visit .name")] == STAGES
    lanes = [one.rect for one in browser.all(".lane")]
    bars = [one.rect for one in browser.all(".lane > b")]
    assert len(bars) == len(STAGES)
    assert [bar["x"] for bar in bars] == sorted(bar["x"] for bar in bars)
    for lane, bar in zip(lanes, bars, strict=True):
        assert bar["width"] >= 2
        assert lane["x"] <= bar["x"]
        assert bar["x"] + bar["width"] <= lane["x"] + lane["width"] + 4.5  # the thinnest bar's width


def test_every_stage_opens_by_keyboard(browser: Browser, approved: Path) -> None:
    browser.open(approved)
    visits = browser.all(".visit")
    for visit in visits:
        before = len(browser.all(".visit[open] .exchange"))
        _tab_to(browser, visit)
        browser.press(Keys.ENTER)
        assert visit.get_attribute("open") is not None
        assert len(browser.all(".visit[open] .exchange")) >= before
    assert len(browser.all(".visit[open] .exchange")) == 6


def test_the_prompts_are_there_with_what_was_answered(browser: Browser, approved: Path) -> None:
    browser.open(approved)
    browser.run(OPEN_ALL)
    repaired = browser.all(".visit")[9]
    assert [one.text for one in repaired.find_elements("css selector", ".role")] == [
        *("SYSTEM", "USER", "ASSISTANT", "TOOL", "ANSWER"),
        *("SYSTEM", "USER", "ASSISTANT", "TOOL", "ASSISTANT", "USER", "ANSWER"),
    ]
    assert "Call a tool where the request needs one" in repaired.text
    assert "cannot be read" in repaired.text
    asked = browser.all(".visit")[11]
    assert "call approved notebook.write_note" in asked.text


def test_hostile_text_is_shown_and_is_only_text(browser: Browser, hostile: Path) -> None:
    browser.open(hostile)
    browser.run(OPEN_ALL)
    assert browser.all("script, img, iframe, object, link, form, [onerror], [onclick]") == []
    shown = browser.run("return document.body.innerText")
    assert shown.count("<script>alert(1)</script>") > 10
    assert not set(HIDDEN) & set(shown)
    assert "\N{MATHEMATICAL LEFT ANGLE BRACKET}U+202E\N{MATHEMATICAL RIGHT ANGLE BRACKET}" in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_legible(browser: Browser, either: Path, scheme: Scheme) -> None:
    browser.open(either, scheme=scheme)
    browser.run(OPEN_ALL)
    contrasts = browser.contrasts()
    assert len(contrasts) > 200
    assert [(round(ratio, 2), text) for ratio, text in contrasts if ratio < LEGIBLE] == []


def test_dark_is_dark(browser: Browser, approved: Path) -> None:
    seen = []
    for scheme in ("light", "dark"):
        browser.open(approved, scheme=scheme)
        seen.append(browser.run("return getComputedStyle(document.body).backgroundColor"))
    assert seen == ["rgb(243, 245, 248)", "rgb(15, 19, 24)"]


@pytest.mark.parametrize("width", [500, 800, 1_600])
def test_no_width_makes_it_scroll_sideways(browser: Browser, either: Path, width: int) -> None:
    browser.open(either, width=width)
    browser.run(OPEN_ALL)
    assert browser.run("return document.scrollingElement.scrollWidth <= window.innerWidth")


def test_its_headings_are_in_order(browser: Browser, approved: Path) -> None:
    browser.open(approved)
    assert len(browser.all("h1")) == 1
    assert [one.get_attribute("textContent") for one in browser.all("h2")] == [
        "At a glance",
        "Timeline",
        "Calls",
        "Palette",
    ]


def _tab_to(browser: Browser, visit: object) -> None:
    """Press Tab until the stage's line has the focus."""
    for _ in range(200):
        browser.press(Keys.TAB)
        if browser.driver.execute_script("return document.activeElement.parentElement === arguments[0]", visit):
            return
    raise AssertionError("the line cannot be reached")
