"""The word lists that provenance tracing uses."""

DESTINATIONS = frozenset(
    "account address addressee assignee attendee bcc beneficiary bucket cc channel chat conversation destination dest"
    " dir directory domain email endpoint file filename filepath folder group guest handle host hostname href iban"
    " invitee link mail mailbox member number organizer owner participant passcode password path payee"
    " phone pin receiver recipient repo"
    " repository room site src target team thread to topic uri url user username wallet webhook webpage website".split()
)
"""Words in the names of parameters that hold a destination, or a person who gets access."""

PAYLOADS = frozenset(
    "answer attachment body caption code command comment content data description html input markdown memo message"
    " note payload post prompt q query question reason reply script search sql statement subject summary text title"
    " value".split()
)
"""Words in the names of parameters that hold a payload (the content to send)."""

IDENTIFIERS = frozenset("id ids key uid uuid index".split())
"""Last words of the names of parameters that hold neither a destination nor a payload."""

PLACES = frozenset("location place venue".split())
"""Names of parameters that hold a payload, unless their value is an address or a path."""

QUANTITIES = frozenset(
    "amount cost count discount distance duration fee height hour length minute percent percentage price quantity rate"
    " salary sum tax temperature tip total weight width".split()
)
"""Words in the names of parameters whose numbers say how much, not which."""

PROGRAMS = frozenset("code command expression formula query q script search sql statement".split())
"""Words in the names of payloads that are executed, such as queries: another value has another effect."""

DESTINATION_FORMATS = frozenset("email idn-email uri url uri-reference iri hostname idn-hostname ipv4 ipv6".split())
"""Formats of JSON Schema whose values are addresses."""

FREE_TEXT_KEYS = frozenset(
    "abstract answer bio body caption comment content description feedback html markdown message note page post review"
    " snippet subject summary text".split()
)
"""Output fields whose author chooses the words: an address in such a field counts as free text, even alone."""

LISTS = frozenset("all find glob list listing ls names search tree".split())
"""Words in the names of tools whose output's lines are names, not a document."""

ACTIONS: tuple[tuple[str, ...], ...] = tuple(
    tuple(family.split())
    for family in (
        "send mail email message forward reply respond answer dm text tell notify inform write share pay transfer wire"
        " refund transaction feedback announce post give return",
        "email send mail message forward reply write tell notify",
        "mail send email message forward reply write tell notify",
        "reply respond answer send write tell email mail",
        "forward send share email mail",
        "message send dm text tell notify write",
        "notify tell inform send message alert",
        "post publish tweet announce send write share message upload put",
        "publish post share announce release",
        "pay transfer send wire refund remit repay settle reimburse donate tip transaction",
        "transfer pay send wire move remit",
        "delete remove erase drop purge trash discard clear wipe destroy",
        "remove delete erase drop kick exclude detach take",
        "create add make new set write save start generate schedule plan draft open book arrange put prepare build",
        "add append include insert put join create extend attach invite write",
        "append add insert write put include extend",
        "insert add append put write",
        "make create build",
        "schedule book plan arrange create add set recurring",
        "reserve book reservation order",
        "book reserve reservation schedule order",
        "order buy purchase",
        "buy order purchase",
        "update change modify edit adjust set correct fix replace amend adapt increase decrease raise lower move",
        "change update modify edit adjust set replace switch",
        "modify change update edit adjust set replace",
        "edit change update modify rewrite correct fix replace",
        "set change update adjust put turn switch configure",
        "rename change move call",
        "reschedule move postpone shift change update",
        "share grant give send allow permit",
        "grant give allow permit share",
        "invite add ask send",
        "cancel abort call stop delete remove revoke",
        "upload put save store submit publish",
        "write save store create put append add edit note copy export",
        "save write store keep put create copy export",
        "store save write keep put",
        "move rename put relocate transfer",
        "copy duplicate clone",
        "run execute launch start invoke",
        "execute run launch start",
        "merge accept close",
        "approve accept confirm sign",
        "subscribe follow join register sign",
        "unsubscribe leave stop cancel",
        "enable activate switch turn",
        "disable deactivate switch turn stop",
        "submit send post file",
        "register sign enrol join",
        "assign give hand",
        "mark set flag label",
        "close finish end resolve complete",
    )
)
"""Verbs of tools, each followed by other words that ask for the same."""

NOUNS = frozenset("feedback new note recurring text".split())
"""Words among the verbs that are mostly nouns: in free text, they are not an instruction."""

COMMAND_NAMES = frozenset("args argv cmd code command exec program script shell".split())
"""Words in the names of parameters that hold a command or code, which may contain names of files."""

SECRET_NAMES = (
    r"\.env(?:\.[\w.-]+)?",
    r"\.(?:ssh|aws|gnupg|azure|kube|docker|gcloud)",
    r"\.(?:netrc|pgpass|npmrc|pypirc|git-credentials|htpasswd|vault-token|boto)",
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?:\.[\w-]+)?",
    r"[\w.-]+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg)",
    r"(?:credentials?|secrets?|service[_-]account)(?:\.(?:json|ya?ml|toml|ini|txt|env))?",
    r"(?:shadow|gshadow|sudoers|master\.key|authorized_keys|known_hosts)",
    r"\.?mcp\.json",
    r"packetgate[\w.-]*\.(?:toml|db|sqlite3?|json)(?:-(?:wal|shm|journal))?",
    r"\.?packetgate",
)
"""Patterns of the names of files and folders that hold keys or secrets, or say what Packetgate may do."""
