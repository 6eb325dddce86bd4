from dataclasses import replace

import pytest
from support.tool_specs import a_tool

from packetgate.ranking.subject import subject_of
from packetgate.tools.spec.categories import TEXT_ART, category_of

TOOLS = [
    ("studio.make_picture", "Make one from words.", "images"),
    ("studio.generate", "Generate an image from words.", "images"),
    ("studio.image_to_ascii", "Turn an image into a picture of ASCII letters.", TEXT_ART),
    ("studio.draw_image", "Draw an image of ASCII letters.", TEXT_ART),
    ("banner.figlet", "Draw a picture of words.", TEXT_ART),
    ("weather.lookup", "Look up what it will be like.", "weather"),
    ("office.list_tasks", "List what is to be done.", "tasks"),
    ("office.list_tasks", "List the tasks of a project, newest first.", "tasks"),
    ("office.get_project_timeline", "Show the planned timeline.", "projects"),
    ("net.fetch_page", "Fetch a web page.", "web"),
    ("anything.do_it", "Do it.", ""),
    ("anything.do_it", "Do it.", "calendar", "Meetings"),
    ("anything.do_it", "Do it for a song.", "calendar", "meetings"),
]


@pytest.mark.parametrize(("name", "description", "category", "tags"), [(*row, "")[:4] for row in TOOLS])
def test_the_words_of_a_tool_give_its_category(name: str, description: str, category: str, tags: str):
    assert replace(a_tool(name, description), tags=tuple(tags.split())).category == category


def test_a_name_or_a_tag_outweighs_the_server_and_the_server_the_description():
    def category(**words: str) -> str:
        parts = {part: words.get(part, "").split() for part in ("name", "tags", "server", "brief")}
        return category_of(parts)

    assert category(brief="weather") == "weather"
    assert category(brief="weather", server="music") == "audio"
    assert category(brief="weather", server="music", name="tasks") == "tasks"
    assert category(brief="weather", server="music", tags="tasks") == "tasks"
    assert category(brief="weather", server="weather", name="tasks") == category(name="weather tasks") == "weather"
    assert category(brief="weather weather weather weather", name="tasks") == "tasks"
    assert category(brief="places files paths") == "files"
    assert category() == ""


@pytest.mark.parametrize(
    ("request_", "categories"),
    [
        ("Create an image of a fox", {"images"}),
        ("draw my LOGO as ASCII art", {"images", TEXT_ART}),
        ("Search the web for the weather", {"web", "weather"}),
        ("What did I note on the meeting?", {"memory", "calendar"}),
        ("readTaskFile", {"tasks", "files"}),
        ("hello", set()),
        ("", set()),
    ],
)
def test_the_words_of_a_request_give_its_categories(request_: str, categories: set[str]):
    assert subject_of(request_).categories == categories
