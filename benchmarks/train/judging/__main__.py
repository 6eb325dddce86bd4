"""`python -m benchmarks.train.judging DATA --base MODEL`: trains the judge's encoder, exports it, weighs it.

Needs torch, transformers, onnx and onnxscript beside the project. MODEL is a folder with MiniLM's weights and
vocabulary. What was read and what was reached is printed as it goes, as JSON.
"""

import argparse
from pathlib import Path

from packetgate.reflex.judge.judge import JUDGE_WEIGHTS

STAGES = ("train", "export", "calls", "fit")


def main() -> None:
    """Train on tools and export, train on calls and export, fit: all of it, or the stages that are named."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.train.judging", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder of the data sets")
    parser.add_argument("--base", type=Path, help="the encoder to start from")
    parser.add_argument("--out", type=Path, default=Path("build/judge"), help="where training keeps its weights")
    parser.add_argument("--minutes", type=float, default=40, help="how long to train at most")
    parser.add_argument("--share", type=float, default=1, help="of the examples, for a trial")
    parser.add_argument("--without", default="", help="of the calls, leave out sources whose names begin so")
    parser.add_argument("--upper", type=int, default=0, help="of the calls, train so many layers, half on follow-ups")
    parser.add_argument("--resume", type=int, metavar="N", help="go on from the weights in --out, after N examples")
    parser.add_argument("--shipped", action="store_true", help="put the weights that are shipped there first")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    given = parser.parse_args()
    if given.base is None and {"train", "export"} & {*given.stages}:
        parser.error("--base is needed to train and to export")
    given.out.mkdir(parents=True, exist_ok=True)
    if "train" in given.stages:
        from benchmarks.train.judging.export import restored
        from benchmarks.train.judging.training import save, train

        if given.shipped:
            save(restored(given.base, JUDGE_WEIGHTS / "judge.onnx"), given.out)
        train(given.data, given.base, given.out, given.minutes, given.share, resume=given.resume)
    if "export" in given.stages:
        from benchmarks.train.judging.export import export

        JUDGE_WEIGHTS.mkdir(exist_ok=True)
        export(given.base, given.out / "judge.pt", JUDGE_WEIGHTS / "judge.onnx")
    if "calls" in given.stages:
        from benchmarks.train.judging import rightness
        from benchmarks.train.judging.calls import shuffled_examples

        kept = given.out / "calls.npz"
        if not kept.exists():
            rightness.pack(shuffled_examples(given.data, given.share), kept)
        start = JUDGE_WEIGHTS / "judge.onnx"
        trained = rightness.train(kept, start, given.minutes, without=given.without, upper=given.upper)
        rightness.export(trained, JUDGE_WEIGHTS / "judge.onnx")
    if "fit" in given.stages:
        from benchmarks.train.judging.fitting import fit

        fit(given.data)


if __name__ == "__main__":
    main()
