"""Run the benchmarks that need only this checkout; with PACKETGATE_DATA, also the benchmarks that need data sets.

Pass names of results to run only their benchmarks. Long benchmarks, such as `benchmarks.safety` (prompt injections) and
`benchmarks.everyday` (plain requests on real servers), run only if you name them.
"""

import os
import subprocess

from benchmarks.command_line import command_parser
from benchmarks.results_kept import FOLDER, ROOT, read

ALONE = ("startup", "overhead", "mcp_calls", "growth")
ON_DATA = ("models", "tokens", "ranking", "proxy", "selection")


def main() -> None:
    """Run the commands of the stored results, and print their readable output."""
    parser = command_parser("benchmarks", __doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(sorted(one.stem for one in FOLDER.iterdir()))
    )
    named = parser.parse_args().names
    for name in named or (*ALONE, *(ON_DATA if os.environ.get("PACKETGATE_DATA") else ())):
        for run in read(name).runs:
            words = [word for word in run.words() if word != "--json"]
            print(f"\n{run.title}: {' '.join(words[1:])}", flush=True)
            subprocess.run(words, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
