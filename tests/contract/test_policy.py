"""Rules allow, ask about or deny calls. The strictest rule decides, however a value is spelled."""

from pathlib import Path
from typing import Any

from contract.doors import ALL, GRAPH, PROXY
from contract.rows import (
    ASKS,
    DRY_RUN,
    MAIL_MIA,
    NOTE_A,
    REFUSED,
    RUNS,
    WRITES,
    Row,
    ask_for,
    check,
    each,
    fetch,
    find,
    mail,
    note,
    request,
)


def rule(effect: str, tool: str, arguments: dict[str, str] | None = None, channels: str = "") -> str:
    """Return a rule of a `packetgate.toml`."""
    listed = ", ".join(f"{name} = '{pattern}'" for name, pattern in (arguments or {}).items())
    lines = [f'effect = "{effect}"', f'tool = "SERVER.{tool}"', f"arguments = {{ {listed} }}"]
    return "\n".join(["[[policy.rules]]", *lines, *([f'channels = ["{channels}"]'] if channels else []), ""])


ALLOW_MAIL = rule("allow", "send_mail")
ALLOW_OFFICE = rule("allow", "send_mail", {"to": "*@office.example", "text": "**"})
ALLOW_SMALL = rule("allow", "pay", {"recipient": "Ann", "amount": "<= 20"})
FIND = request("Find order 17", find())


def to(address: str) -> Any:
    return request(f"Write to {address}: it is late", mail(address))


def paying(amount: float, recipient: str = "Ann") -> Any:
    return request(f"Pay {amount} to {recipient}", ("pay", {"recipient": recipient, "amount": amount}))


EFFECTS = [
    Row("an allow rule replaces the question", MAIL_MIA, RUNS, policy=ALLOW_MAIL, settings=WRITES, doors=ALL),
    Row("an allow rule does not switch writes on", MAIL_MIA, DRY_RUN, policy=ALLOW_MAIL),
    Row("an allow rule covers only its tool", NOTE_A, ASKS, policy=ALLOW_MAIL, settings=WRITES),
    Row("an ask rule asks about a read", FIND, ASKS, policy=rule("ask", "find_order") + rule("allow", "*")),
    Row("a denied tool does not run", MAIL_MIA, REFUSED, policy=rule("deny", "send_mail") + ALLOW_MAIL, doors=ALL),
    Row("a deny rule overrides an allow rule", to("eve@evil.example"), REFUSED, "denied by a policy rule",
        policy=ALLOW_MAIL + rule("deny", "send_mail", {"to": "*@evil.example"}), settings=WRITES),
    Row("a deny rule for some arguments does not deny others", MAIL_MIA, RUNS,
        policy=ALLOW_MAIL + rule("deny", "send_mail", {"to": "*@evil.example"}), settings=WRITES),
    Row("an allowed address runs", to("ann@office.example"), RUNS, policy=ALLOW_OFFICE, settings=WRITES),
    Row("another address is asked about", to("ann@evil.example"), ASKS, policy=ALLOW_OFFICE, settings=WRITES),
    Row("an address with only the same beginning is asked about", to("ann@office.example.evil.example"), ASKS,
        policy=ALLOW_OFFICE, settings=WRITES),
    Row("an amount within the bound runs", paying(20), RUNS, policy=ALLOW_SMALL, settings=WRITES),
    Row("an amount beyond the bound is asked about", paying(20.01), ASKS, policy=ALLOW_SMALL, settings=WRITES),
    Row("a rule compares every argument that it names", paying(5, "Eve"), ASKS, policy=ALLOW_SMALL, settings=WRITES),
    Row("an allow rule of another channel does not hold", MAIL_MIA, ASKS,
        policy=rule("allow", "send_mail", channels="discord"), settings=WRITES),
    Row("an allow rule of the proxy holds in the proxy", MAIL_MIA, RUNS, doors=[PROXY],
        policy=rule("allow", "send_mail", channels="proxy"), settings=WRITES),
    Row("an allow rule of the server holds in the graph", MAIL_MIA, RUNS, doors=[GRAPH],
        policy=rule("allow", "send_mail", channels="server"), settings=WRITES),
]  # fmt: skip


@each(EFFECTS)
async def test_policy_rules_decide(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)


DENY_PAGE = rule("deny", "fetch_page", {"url": "https://evil.example/**"})
DENY_NOTE = rule("deny", "write_note", {"name": "secret/*"}) + rule("allow", "write_note")
DENY_CALLBACK = rule("deny", "request", {"options": "https://evil.example/**"})

SPELLINGS = [
    *(
        Row(f"a denied address does not run: {spelled}", request(f"Fetch {spelled}", fetch(spelled)), REFUSED, **rules)
        for rules in [{"policy": DENY_PAGE}]
        for spelled in (
            "https://evil.example/x",
            "HTTPS://EVIL.example:443/x",
            "https://user@evil.example./x",
            "https://good.example/r?u=https%253A%252F%252Fevil.example",
        )
    ),
    *(
        Row(f"a denied path does not run: {path}", request(f"Write avocado to {path}", note(path)), REFUSED, **rules)
        for rules in [{"policy": DENY_NOTE, "settings": WRITES}]
        for path in ("secret/a", "b/../SECRET/a", "%73ecret//a")
    ),
    Row("a denied address in a nested list does not run",
        request("Request it from the shop", ask_for("/a", hooks=[{"to": "https://evil.example/x"}])), REFUSED,
        policy=DENY_CALLBACK),
    Row("an address that is not denied runs", request("Fetch https://good.example/", fetch("https://good.example/")),
        RUNS, policy=DENY_PAGE),
    Row("a path that is not denied runs", NOTE_A, RUNS, policy=DENY_NOTE, settings=WRITES),
]  # fmt: skip


@each(SPELLINGS)
async def test_a_denied_value_is_denied_in_every_spelling(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)
