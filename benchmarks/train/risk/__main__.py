"""`python -m benchmarks.train.risk DATA`: learns the weights anew and writes them into the package."""

import json
import sys
from dataclasses import asdict

import numpy as np

from benchmarks.train.risk.data import catalogue, data_folder, labelled, own, weights_of
from benchmarks.train.risk.learning import calibrated, learn, left_out_models, seen
from packetgate.tools.risk.tool import RISK_WEIGHTS


def main() -> None:
    """Train, calibrate on servers left out, and write the file."""
    folder = data_folder(sys.argv[1:])
    examples = [*labelled(folder), *own(), *catalogue(folder)]
    features = seen(examples)
    models = left_out_models(examples, features, lambda one: one.server)
    rows = [(one, row) for one, row in zip(examples, features, strict=True) if one.repository]
    scores = np.array([models[one.server].score(row) for one, row in rows])
    calibration = calibrated(
        scores, np.array([float(one.does_more) for one, _ in rows]), np.array(weights_of([one for one, _ in rows]))
    )
    made = asdict(learn(examples, features, calibration=calibration))
    RISK_WEIGHTS.write_text(json.dumps(made, indent=0, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    sys.stdout.write(f"{len(made['weights'])} weights of {len(examples)} tools, calibration {calibration}\n")


if __name__ == "__main__":
    main()
