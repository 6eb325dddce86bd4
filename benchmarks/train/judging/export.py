"""The trained encoder as a quantised ONNX file, and back from one, to train on from what is shipped."""

from pathlib import Path

import onnx
import torch
from onnx.numpy_helper import to_array
from onnxruntime.quantization import QuantType, quantize_dynamic

from benchmarks.train.exact_products import exact_products
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
    quantize_dynamic(str(whole), str(target), weight_type=QuantType.QInt8, per_channel=True)
    exact_products(target)
    whole.unlink()


def restored(base: Path, exported: Path) -> Judge:
    """Return the encoder whose export is given, as near as its integers tell; word embeddings are the base's."""
    graph = onnx.load(str(exported)).graph
    held = {one.name: torch.from_numpy(to_array(one).copy()) for one in graph.initializer}
    reads = {name: node for node in graph.node for name in node.input}
    model = Judge(base)
    known = model.state_dict()
    for name, value in held.items():
        if name in known:
            known[name] = value
        if not name.endswith("_quantized"):
            continue
        stem = name.removesuffix("_quantized")
        weights = (value.float() - held[f"{stem}_zero_point"].float()) * held[f"{stem}_scale"]
        if stem in known:
            known[stem] = weights
            continue
        node = reads[name]
        while node.op_type != "Add" or not held.keys() & {*node.input}:
            node = reads[node.output[0]]
        bias = next(one for one in node.input if one in held)
        known[bias.removesuffix("bias") + "weight"] = weights.T
    known["encoder.embeddings.word_embeddings.weight"] = model.state_dict()["encoder.embeddings.word_embeddings.weight"]
    model.load_state_dict(known)
    return model
