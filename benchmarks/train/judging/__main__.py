"""`python -m benchmarks.train.judging DATA --base MODEL`: train the judge's encoder, export it, and fit its weights.

It needs torch, transformers, onnx and onnxscript. MODEL is a folder with MiniLM's weights and vocabulary. It prints the
progress and the metrics as JSON.
"""

from pathlib import Path

from benchmarks.command_line import command_parser
from packetgate.reflex.judge.judge import JUDGE_WEIGHTS

STAGES = ("train", "export", "calls", "fit")


def main() -> None:
    """Run the named stages or all stages: train on tools, export, train on calls, export, fit."""
    parser = command_parser("benchmarks.train.judging", __doc__)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("--base", type=Path, help="initial encoder")
    parser.add_argument("--out", type=Path, default=Path("build/judge"), help="folder for the trained weights")
    parser.add_argument("--minutes", type=float, default=40, help="maximum time of training")
    parser.add_argument("--share", type=float, default=1, help="share of the examples, for a trial run")
    parser.add_argument("--without", default="", help="calls: leave out sources with this prefix")
    parser.add_argument("--upper", type=int, default=0, help="calls: train this many layers, half on follow-ups")
    parser.add_argument("--resume", type=int, metavar="N", help="continue with the weights in --out, after N examples")
    parser.add_argument("--shipped", action="store_true", help="first copy the shipped weights there")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    args = parser.parse_args()
    if args.base is None and {"train", "export"} & {*args.stages}:
        parser.error("--base is needed to train and to export")
    args.out.mkdir(parents=True, exist_ok=True)
    if "train" in args.stages:
        from benchmarks.train.judging.export import restored
        from benchmarks.train.judging.training import save, train

        if args.shipped:
            save(restored(args.base, JUDGE_WEIGHTS / "judge.onnx"), args.out)
        train(args.data, args.base, args.out, args.minutes, args.share, resume=args.resume)
    if "export" in args.stages:
        from benchmarks.train.judging.export import export

        JUDGE_WEIGHTS.mkdir(exist_ok=True)
        export(args.base, args.out / "judge.pt", JUDGE_WEIGHTS / "judge.onnx")
    if "calls" in args.stages:
        from benchmarks.train.judging import rightness
        from benchmarks.train.judging.calls import shuffled_examples

        kept = args.out / "calls.npz"
        if not kept.exists():
            rightness.pack(shuffled_examples(args.data, args.share), kept)
        start = JUDGE_WEIGHTS / "judge.onnx"
        trained = rightness.train(kept, start, args.minutes, without=args.without, upper=args.upper)
        rightness.export(trained, JUDGE_WEIGHTS / "judge.onnx")
    if "fit" in args.stages:
        from benchmarks.train.judging.fitting import fit

        fit(args.data)


if __name__ == "__main__":
    main()
