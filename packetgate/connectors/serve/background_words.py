"""The words and marks by which background prompts are recognised.

Each name is a regular expression, made of a list. `THING` is what such a prompt asks for, `ABOUT` what it is about, and
`FORM` how its answer must look. In languages other than English, where the order of words differs, a word of
`THING_ELSEWHERE` stands for verb and object.
"""

import re

MAKE = (
    "generat", "creat", "writ", "giv", "provid", "suggest", "propos", "produc", "return", "respond with", "reply with",
    "answer with", "output", "extract", "craft", "make", "determin", "identify", "come up with", "predict", "assign",
    "invent", "pick", "choos", "select", "formulat",
)  # fmt: skip
THING = (
    "titles?", "headings?", "headlines?", "subject lines?", "names?", "tags?", "labels?", "keywords?", "key words",
    "categor(?:y|ies)", "topics?", "themes?", "follow[- ]?ups?", "suggestions?", "summar(?:y|ies)", "recap", "queries",
    "descriptions?", "emojis?", "continuations?", "completions?", "standalone questions?", "translat(?:ion|ed text)",
    "relevant context", "key (?:facts|points|takeaways|information)", "prompt for continuing", "questions?",
    "memories", "passages?", r"(?:enhanced|improved|better|rewritten) (?:version|prompt)",
    r"(?:next|suggested|related|relevant|possible|search|likely|useful|short|quick) "
    r"(?:questions?|messages?|prompts?|quer\w+|replies)",
)  # fmt: skip
NARROW = (
    "titles?", "names?", "tags?", "labels?", "topics?", "emojis?", "categor(?:y|ies)", "translat(?:ion|ed text)",
    "completions?", "standalone questions?",
)  # fmt: skip
"""Results that no tool produces."""
THING_ELSEWHERE = (
    "titel", "überschrift", "schlagw", "zusammenfass", "titre", "étiquette", "mots-clés", "résum", "t[íi]tulo",
    "etiqueta", "resum", "titolo", "riassu", "tytuł", "заголов", "назван", "тег", "резюм", "标题", "標題", "题目",
    "标签", "標籤", "总结", "總結", "摘要", "概括", "主题", "主題", "タイトル", "件名", "要約", "タグ",
    "제목", "요약", "태그",
)  # fmt: skip
REWORK = (
    "summari[sz]", "condens", "recap", "auto-?complet", "categori[sz]", "classif", "re?phras", "renam", "translat",
    "synthesi[sz]", "compact", "compress",
)  # fmt: skip
TALK = ("chats?", "conversations?", "dialog(?:ue)?s?", "discussions?", "threads?", "exchange", "session")
ASKED = (r"(?:previous|above|following|first|initial|original|latest|user'?s?) (?:query|request|prompt|question)",)
TALK_ELSEWHERE = (
    "unterhaltung", "gespräch", "verlauf", "échange", "conversación", "charla", "conversa", "conversazione",
    "对话", "對話", "这句话", "会话", "會話", "聊天", "会話", "対話", "チャット", "대화",
    "разговор", "диалог", "бесед", "чат",
)  # fmt: skip
ONLY = (
    r"\{\s*\"?\w+\"?\s*:", r"\bjson\b", r"\b(?:only|solely|exclusively|nothing else|just the)\b",
    r"\b(?:do not|don't|no|without|avoid|never|omit\w*)\b[^.\n]{0,60}\b(?:quot|punctuation|period|emoji|expla"
    r"|preamble|markdown|formatting|prefix|additional|extra|lead-in)",
    r"\b(?:do not|don't|never) (?:answer|respond|reply)\b",
    r"\b(?:nur|seulement|uniquement|sólo|solo|soltanto|только)\b", "只", "仅", "僅", "不要", "不需要", "のみ", "だけ",
)  # fmt: skip
LENGTH = (
    r"\b(?:a|one|two|three|four|five|six|eight|ten|few|single) (?:\w+ )?(?:words?|sentences?|lines?|characters?)\b",
    r"(?<![\dA-Za-z.])\d{1,3}(?![\dA-Za-z.])",
    r"\b(?:no (?:more|longer) than|at most|concise|short|brief|max(?:imum)?|your task is)\b",
    r"(?:^|\n)[^\n]{1,40}[:\N{FULLWIDTH COLON}]\s*$",
)  # fmt: skip
USER = (
    "user", "human", "customer", "me", "you", "q", "question", "prompt", "nutzer", "benutzer", "utilisateur", "usuario",
    "utente", "用户", "用戶", "ユーザー?", "사용자", "пользователь",
)  # fmt: skip
OTHER = (
    "assistant", "ai", "bot", "model", "llm", "chatgpt", "gpt", "agent", "a", "answer", "response", "reply",
    "assistent", "asistente", "assistente", "助手", "アシスタント", "어시스턴트", "ассистент",
)  # fmt: skip
DO = (
    "save", "store", "send", "e-?mail", "post", "publish", "upload", "delete", "commit", "push", "book", "schedule",
    "append", "insert", "run", "execute", "install", "download", "attach", "put", "add", "file", "forward", "share",
    "notify", r"reply to (?!the user)",
    r"create an? (?:\w+ )?(?:issue|ticket|event|file|note|page|task|reminder)",
)  # fmt: skip
"""Orders of users, which background prompts never contain."""


def any_of(*lists: tuple[str, ...]) -> str:
    """Return the alternatives as one expression."""
    return f"(?:{'|'.join(one for each in lists for one in each)})"


def _compiled(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


TASK = _compiled(
    rf"\b{any_of(MAKE)}\w*\b(?:[^\w.!?\n]+(?!(?:no|not|without|never|any|with|in|of)\b)[\w'-]+){{0,8}}?[^\w.!?\n]+{any_of(THING)}\b",
    rf"\b(?:{any_of(THING)}|titling|tagging|summari[sz]\w+) (?:generator|writer|maker|creator|assistant|expert|ai)\b",
    r"\bsummari[sz]er\b",
    rf"\b{any_of(REWORK)}\w*(?: \w+){{0,4}} (?:this|the|our|your|a|an|in|as|into|above|below|following|users?)\b",
    r"\b(?:identify|detect|determine) the language\b",
    r"\b(?:continue|complete) (?:the|this|my) (?:\w+ ){0,3}(?:text|message|prompt|code|sentence|line|input)",
    rf"\b(?:title|summary|tags|topic)s?\b[^.\n]{{0,40}}(?:of|for|that|to) [^.\n]{{0,30}}\b{any_of(TALK, ASKED)}\b",
    rf"(?m:^)\W*(?:\d\W+)?an? (?:[\w-]+ ){{0,3}}{any_of(THING)}\b",
    r"\byour task is\b|\byour (?:next )?(?:response|reply|answer|output) (?:must|should)\b",
    r"\bauto-?complet\w*|\bhole filler\b",
    any_of(THING_ELSEWHERE),
)
ONLY_THING = _compiled(
    rf"\bonly\b\W+(?:{any_of(MAKE)}\w*\W+)?(?:with\W+)?(?:the|an?|one|this|its)\W+(?:[\w-]+\W+){{0,3}}?{any_of(NARROW)}\b"
)
"""The answer must be only a title or the like: no tool is needed."""
ABOUT = _compiled(
    rf"\b(?:{any_of(TALK, ASKED)}|messages?|transcripts?|this prompt)\b",
    r"\b(?:input|given|provided|following) (?:text|content)\b",
    any_of(TALK_ELSEWHERE),
)
THIS = _compiled(
    rf"\b(?:this|our|the|above|following|below) (?:whole |entire |last |previous )?{any_of(TALK)}\b",
    r"\b\w+ (?:so far|above)\b",
    r"\bthe user (?:might|may|could|would|will)\b",
    r"\b(?:another|the next|a new) (?:llm|model|agent|assistant|session)\b",
    any_of(TALK_ELSEWHERE),
)
"""References to the current conversation."""
STRICT = _compiled(any_of(ONLY))
STRICT_OR_SHORT = _compiled(any_of(ONLY, LENGTH[:-1]))
FORM = _compiled(any_of(ONLY, LENGTH))
ASKED_BEFORE = _compiled(r"\b(?:previous|above) (?:chat|conversation|message|query|request|prompt|question)")
USER_TAG, OTHER_TAG = _compiled(any_of(USER)), _compiled(any_of(OTHER))
LABEL = re.compile(
    rf"^(?=[^\n]*\s*[:\N{{FULLWIDTH COLON}}]|#+ \w+$)"
    rf"[\W_]*(?:(?P<user>{any_of(USER)})|(?P<other>{any_of(OTHER)}))(?: ?message| said)?"
    r"(?:[*_\])>|\s]*[:\N{FULLWIDTH COLON}]|$)",
    re.IGNORECASE | re.MULTILINE,
)
ORDER = _compiled(rf"(?:^|[.!?;,:]\s+|\n[\W\d]*|\band\s+|\bthen\s+|\bplease\s+|\bto\s+){any_of(DO)}\b")
PLACE = re.compile(r"(?<![\w/])(?:[\w~.-]*/)*[\w-]+\.[A-Za-z]\w{0,5}(?![\w.(])|\w@\w|://|(?<!\w)[~.]?/\w|(?<!\w)[#@]\w")
"""A file, a path, an address, a channel."""
EXAMPLE = re.compile(
    r"</?[\w-]+>|\{[^{}]*\}|\[[^\[\]]*\]|^\W*(?:example|e\.g\.|i\.e\.).*$", re.IGNORECASE | re.MULTILINE
)
FIELD = re.compile(
    r"^(?:[\w-]+ ){0,2}(?:question|input|query|message|request|draft)s? ?:[ \t]*\S.*$", re.IGNORECASE | re.MULTILINE
)
"""A line that quotes one message under a name."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|[\N{IDEOGRAPHIC FULL STOP}]")
ELSEWHERE = re.compile(r"\b(?:files?|documents?|folders?|repositor(?:y|ies)|tools?)\b", re.IGNORECASE)
"""Things outside the conversation, in a system prompt of an assistant."""
JSON = re.compile(r"\{\s*\"\w[\w ]*\"\s*:")
JSON_WORD = re.compile(r"\bjson\b", re.IGNORECASE)
CALL_FORM = re.compile(r"\"tool_calls\"\s*:\s*\[")
"""Open WebUI's request to choose among its own tools."""
FILL_IN = re.compile(
    r"\s*(?:<[|\uff5c]?(?:fim[\w\u2581-]*|(?:prefix|begin|pre|suffix)\b[\w-]*)[|\uff5c]?>|\[(?:suffix|prefix)\])",
    re.IGNORECASE,
)
HOLE = re.compile(
    r"<\|?(?:fim|prefix|suffix|cursor|pre|suf|mid|hole|completion|fill)[\w-]*\|?/?>|\{\{\s*(?:hole|fill)\w*",
    re.IGNORECASE,
)
HISTORY_TAG = re.compile(r"hist|conv|chat|messages|transcript|dialog|discussion|thread", re.IGNORECASE)
BLOCK = re.compile(r"<([A-Za-z][\w-]*)(?:\s[^<>]*)?>((?:(?!<\1[\s>]).)*?)</\1\s*>", re.DOTALL)
OPEN_TAG = re.compile(r"<[A-Za-z][\w-]*>\s*$")
"""A tag at the end, where the model continues."""
OPEN_LABEL = re.compile(r"\n[^\n]{1,40}[:\N{FULLWIDTH COLON}]\s*$")
OPEN_END = re.compile(r"\n(?:[^\n]{1,40}[:\N{FULLWIDTH COLON}]|<[^<>/\n]{1,40}>)\s*$")
"""A label or a tag at the end."""
SECTION = re.compile(r"^(?:[^\n:]{1,40}:|<[^<>/\n]{1,40}>)[ \t]*$", re.MULTILINE)
"""A line that only names the next section."""
QUOTATION = re.compile(r"\"[^\"\n]*\s[^\"\n]*\"")
"""Several words in quotes; a single word may be a file name."""
FENCE = re.compile(r"(`{3,}|~{3,}|\"{3}|-{3,}\n|={3,}\n)(.*?)\1", re.DOTALL)
QUOTED = re.compile(
    r"[\"\N{LEFT DOUBLE QUOTATION MARK}«「]([^\n].*)[\"\N{RIGHT DOUBLE QUOTATION MARK}»」]\s*$", re.DOTALL
)
LAST_FENCE = re.compile(r"(?:`{3}|\"{3})(?:\w*\n)?(.*?)(?:`{3}|\"{3})\s*$", re.DOTALL)
JSON_ROLE = re.compile(r"[\"']?\brole[\"']?\s*[:=]\s*[\"'](user|human|assistant|ai|model)\b", re.IGNORECASE)
