"""The categories of tools and requests, by their words."""

from collections import Counter
from collections.abc import Iterable, Mapping

_WORDS = {
    "text art": "ascii figlet cowsay ansi emoticon emoticons kaomoji",
    "images": (
        "avatar avatars draw drawing drawings icon icons illustrate illustration illustrations image images jpeg"
        " jpg logo logos paint painting paintings photo photograph photos picture pictures png portrait sketch"
        " thumbnail wallpaper"
    ),
    "video": "animation clip clips film films gif movie movies subtitles video videos youtube",
    "audio": "audio melody mp3 music playlist podcast podcasts song songs sound speech transcribe transcript voice wav",
    "weather": "climate forecast forecasts humidity rain snow temperature weather wind",
    "finance": (
        "account accounts bank crypto currencies currency dividend exchange finance financial invoice invoices"
        " market markets payment payments portfolio price prices stock stocks tax ticker"
    ),
    "travel": "airbnb airport flight flights hotel hotels itinerary reservation train trains travel trip trips",
    "maps": (
        "address addresses coordinates directions geocode latitude location locations longitude map maps place"
        " places route"
    ),
    "calendar": "agenda appointment appointments availability calendar calendars event events meeting meetings",
    "tasks": "backlog checklist kanban reminder reminders task tasks ticket tickets todo todos",
    "projects": "goal goals milestone milestones project projects roadmap roadmaps sprint sprints",
    "messages": (
        "channel channels chat chats discord email emails inbox mail mailbox message messages notification"
        " notifications slack sms telegram"
    ),
    "code": (
        "branch branches code codebase commit commits git github gitlab issue issues lint merge package packages"
        " pull refactor repo repos repositories repository"
    ),
    "charts": "chart charts diagram diagrams graph graphs plot plots visualization visualize",
    "data": (
        "cell cells column columns csv database databases dataset datasets excel postgres row rows sheet sheets"
        " spreadsheet spreadsheets sql sqlite table tables workbook worksheet"
    ),
    "documentation": (
        "article articles doc docs documentation encyclopedia faq guide guides handbook manual tutorial tutorials wiki"
    ),
    "files": "directories directory disk document documents file files filesystem folder folders path paths pdf",
    "commands": "bash command commands powershell process processes script scripts shell subprocess terminal",
    "web": (
        "browse browser crawl html http https internet online page pages rss scrape site sites url urls web"
        " webpage website websites"
    ),
    "news": "headline headlines journal news newspaper trending trends",
    "time": "clock date dates time timezone timezones",
    "math": "algebra arithmetic calculate calculator equation equations math matrix statistics",
    "memory": "entities entity knowledge memories memory note notes remember",
    "shopping": "cart order orders product products shop shopping store",
    "health": "disease drug drugs medical medicine patient patients symptom symptoms",
}

CategoryWords = Mapping[str, frozenset[str]]
"""The categories of each word."""
_CATEGORIES_OF: CategoryWords = {
    word: frozenset(category for category, words in _WORDS.items() if word in words.split())
    for word in " ".join(_WORDS.values()).split()
}

CATEGORY_WORDS = frozenset(_CATEGORIES_OF)
"""All words that belong to a category."""

TEXT_ART = "text art"
"""Takes precedence over the category of images: such a tool mentions images but makes none."""

EXTERNAL = frozenset({"web", "news"})
"""Categories of tools that reach outside the user's own servers, unless the tool states otherwise."""

_NONE: CategoryWords = {}
_FIELDS = {"name": 3, "tags": 3, "server": 2, "brief": 1}
"""Weight of a word of a tool, by where it occurs."""


def category_of(words: Mapping[str, Iterable[str]], own: CategoryWords = _NONE) -> str:
    """Return the category with the most weight, then the most words; empty if no word belongs to one.

    Args:
        words: lower-case words of the tool's `name`, `tags`, `server` and `brief` description.
        own: the user's categories of words, in addition to the shipped ones.
    """
    weights: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for field, weight in _FIELDS.items():
        for category in categories_in(words[field], own):
            weights[category] += weight
        counts.update(category for word in {*words[field]} for category in categories_in([word], own))
    if TEXT_ART in weights:
        return TEXT_ART
    by_order = [category for category in [*sorted(weights.keys() - _WORDS.keys()), *_WORDS] if category in weights]
    return max(by_order, key=lambda category: (weights[category], counts[category]), default="")


def categories_in(words: Iterable[str], own: CategoryWords) -> frozenset[str]:
    """Return the categories that lower-case words belong to, including the user's `own`."""
    return frozenset(category for word in words for known in (_CATEGORIES_OF, own) for category in known.get(word, ()))
