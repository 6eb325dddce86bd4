"""`python -m benchmarks.risk DATA`: count the unconfirmed reads among labelled tools.

It prints a row for each source of labels, and each tool with a wrong rating. Disputable labels have their own row.
"""

import sys
from collections.abc import Sequence

from benchmarks.risk.data import Example, catalogue, data_folder, labelled, own
from packetgate.state.routing import Risk
from packetgate.tools.risk.tool import judge_tool


def main() -> None:
    """Print the table and the errors."""
    folder = data_folder(sys.argv[1:])
    tools = labelled(folder)
    sources = {
        "public servers, labelled by their authors": [one for one in tools if not one.doubted],
        "the same, disputed labels": [one for one in tools if one.doubted],
        "public catalogue, labelled by us": catalogue(folder),
        "in our own words": own(),
        "in our own words, held out": own("left_out"),
    }
    print("| source | reads | look like reads | others | look like reads |\n|---|--:|--:|--:|--:|")
    for name, examples in sources.items():
        reads, others = [[one for one in examples if one.does_more is more] for more in (False, True)]
        counts = (len(reads), len(_unconfirmed_reads(reads)), len(others), len(_unconfirmed_reads(others)))
        print(f"| {name} | {' | '.join(map(str, counts))} |")
    for name, examples in sources.items():
        print(f"\n## {name}\n")
        unconfirmed_reads = _unconfirmed_reads(examples)
        for one in examples:
            if (one in unconfirmed_reads) is one.does_more:
                print(f"- {one.label}: {one.server} `{one.tool.name}`: {'; '.join(judge_tool(one.tool).reasons)}")


def _unconfirmed_reads(examples: Sequence[Example]) -> list[Example]:
    return [one for one in examples if judge_tool(one.tool, one.hints).apparent_risk is Risk.READ]


if __name__ == "__main__":
    main()
