"""All benchmarks that need nothing but this checkout, one after the other.

Beside them: `benchmarks.ranking` measures on data sets, `benchmarks.tokens` on one and on a server of npm's,
and `benchmarks.safety` plays prompt injections.
"""

from benchmarks import overhead, startup
from benchmarks.ratio import arguments, show

if __name__ == "__main__":
    given = arguments(__doc__ or "", runs=0)
    for benchmark in (startup, overhead):
        show(benchmark.measure(given.runs or benchmark.RUNS), as_json=given.json)
