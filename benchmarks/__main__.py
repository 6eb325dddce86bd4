"""All benchmarks, one after the other."""

from benchmarks import journey, startup
from benchmarks.ratio import arguments, show

if __name__ == "__main__":
    given = arguments(__doc__ or "", runs=0)
    for benchmark in (startup, journey):
        show(benchmark.measure(given.runs or benchmark.RUNS), as_json=given.json)
