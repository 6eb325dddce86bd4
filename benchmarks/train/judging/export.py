"""The trained encoder as a quantised ONNX file."""

from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

from benchmarks.train.judging.training import Judge


def export(base: Path, weights: Path, target: Path) -> None:
    """Write `target` from the weights that training kept."""
    model = Judge(base, attention="eager")
    model.load_state_dict(torch.load(weights, weights_only=True))
    model.eval()
    ids = torch.randint(1000, 2000, (2, 24))
    marks = torch.tensor([[12, 18], [12, 18]])
    whole = target.with_suffix(".float.onnx")
    axes = {name: {0: "batch", 1: "tokens"} for name in ("ids", "mask", "segments")}
    torch.onnx.export(
        model,
        (ids, torch.ones_like(ids), torch.zeros_like(ids), marks),
        str(whole),
        input_names=["ids", "mask", "segments", "markers"],
        output_names=["serves", "begin", "end"],
        dynamic_axes={**axes, "markers": {0: "batch", 1: "parameters"}},
        dynamo=False,
        opset_version=17,
    )
    quantize_dynamic(str(whole), str(target), weight_type=QuantType.QInt8)
    whole.unlink()
