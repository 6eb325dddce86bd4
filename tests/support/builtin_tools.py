"""The names of the built-in tools by risk, as listed in docs/servers.md."""

import re

from support.pages import ROOT

_ROWS = re.findall(
    r"^\| (`(?:ai|embedding)\.[^|]*) \| (\w+) \|", (ROOT / "docs" / "servers.md").read_text(), re.MULTILINE
)
RISKS = {name: risk for names, risk in _ROWS for name in re.findall(r"`([\w.]+)`", names)}
ALL = sorted(RISKS)
READS, WRITES = (sorted(name for name in ALL if RISKS[name] == risk) for risk in ("read", "write"))
