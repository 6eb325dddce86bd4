"""Export the trained encoder as a quantised ONNX file, and restore an encoder from the shipped file for training."""

from pathlib import Path

import onnx
import torch
from onnx.numpy_helper import to_array
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn

from benchmarks.train.exact_products import exact_products
from benchmarks.train.judging.training import Judge


def export(base: Path, weights: Path, target: Path) -> None:
    """Write `target` from the weights that the training stored."""
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
    """Return the encoder of an exported file, with the precision of its integers and the base's word embeddings."""
    model = Judge(base)
    words = model.encoder.embeddings.word_embeddings.weight
    before = words.detach().clone()
    load_exported(model, exported)
    with torch.no_grad():
        words.copy_(before)
    return model


def load_exported(model: nn.Module, exported: Path) -> None:
    """Load the weights of an exported file into a model, with the precision of its integers; other weights stay."""
    graph = onnx.load(str(exported)).graph
    held = {one.name: torch.from_numpy(to_array(one).copy()) for one in graph.initializer}
    reads: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            reads.setdefault(name, []).append(node)
    known = model.state_dict()
    for name, value in held.items():
        if name in known:
            known[name] = value
        if not name.endswith("_quantized"):
            continue
        stem = name.removesuffix("_quantized")
        weights = (value.float() - held[f"{stem}_zero_point"].float()) * held[f"{stem}_scale"]
        straight = stem.removesuffix("_Transposed")
        key = straight if straight in known else _weights_at(name, reads, held)
        if key in known:
            known[key] = weights if key == stem else weights.T.contiguous()
    model.load_state_dict(known)


def _weights_at(name: str, reads: dict[str, list[onnx.NodeProto]], held: dict[str, torch.Tensor]) -> str:
    """Return the name of a product's weights, by the bias that is added to the product."""
    ahead = [*reads[name]]
    while ahead:
        node = ahead.pop(0)
        bias = [one for one in node.input if node.op_type == "Add" and one in held and one.endswith(".bias")]
        if bias:
            return f"{bias[0].removesuffix('bias')}weight"
        ahead += [later for output in node.output for later in reads.get(output, [])]
    return ""
