"""Convert a dynamically quantised ONNX file to the shipped form, which gives the same numbers on every processor.

Dynamic quantisation depends on the processor in two ways:

- Without VNNI, x86 adds pairs of eight-bit products in sixteen bits, which can saturate. With weights of seven bits, no
  sum saturates.
- The last digit of a float can decide the rounding of an activation, and the difference grows from layer to layer. Here
  an activation is two eight-bit numbers, a coarse number and the rest, so that a step is 256 times smaller.

The cosines of 60 requests differ by less than 1e-4 between AVX-512, AVX2, AVX and SSE; before, by up to .043.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.helper import make_node, make_tensor
from onnx.numpy_helper import from_array, to_array

MOST = 64
"""The largest weight. Its product with 2 * 255 fits a signed 16-bit integer."""
NUMBERS = {"exact.least": 1e-30, "exact.1/127": 1 / 127, "exact.128": 128, "exact.255": 255, "exact.256": 256}
ZERO = "exact.zero_point"


def exact_products(path: Path) -> None:
    """Rewrite the file with seven-bit weights and with activations of two eight-bit numbers."""
    model = onnx.load(path)
    held = {one.name: one for one in model.graph.initializer}
    for name in {node.input[1] for node in model.graph.node if node.op_type == "MatMulInteger"}:
        _narrow(name.removesuffix("_quantized"), held)
    nodes = [*_rewritten(model.graph)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        make_tensor(name, onnx.TensorProto.FLOAT, (), [number]) for name, number in NUMBERS.items()
    )
    model.graph.initializer.append(make_tensor(ZERO, onnx.TensorProto.UINT8, (), [128]))
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _narrow(stem: str, held: dict[str, onnx.TensorProto]) -> None:
    """Convert a table of weights to seven bits, with one scale per column. Small integers stay unchanged."""
    whole, zero, scale = (to_array(held[f"{stem}_{part}"]) for part in ("quantized", "zero_point", "scale"))
    integers = whole.astype(np.float32) - zero
    most = np.abs(integers).max(0)
    step = np.maximum(1, most / MOST).astype(np.float32)
    _put(held[f"{stem}_quantized"], np.round(integers / step).astype(np.int8))
    _put(held[f"{stem}_zero_point"], np.zeros(len(most), np.int8))
    _put(held[f"{stem}_scale"], (step * scale).astype(np.float32))


def _put(held: onnx.TensorProto, values: NDArray[Any]) -> None:
    held.CopyFrom(from_array(np.ascontiguousarray(values), held.name))


def _rewritten(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the graph's nodes with all dynamically quantised products in the new form."""
    made_by = {name: node for node in graph.node for name in node.output}
    read_by = {name: node for node in graph.node for name in node.input}
    dropped = {id(node) for node in graph.node if node.op_type == "DynamicQuantizeLinear"}
    outputs: dict[str, str] = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            cast = read_by[node.output[0]]
            scaled = read_by[cast.output[0]]
            (scale,) = (made_by[one] for one in scaled.input if one != cast.output[0])
            dropped |= {id(cast), id(scaled), id(scale)}
            outputs[node.output[0]] = scaled.output[0]
    split: set[str] = set()
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            activations = made_by[node.input[0]].input[0]
            if activations not in split:
                split.add(activations)
                yield from _split(activations)
            yield from _product(activations, node.input[1].removesuffix("_quantized"), outputs[node.output[0]])
        elif id(node) not in dropped:
            yield node


def _split(of: str) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that split activations into two tables of eight bits, with one scale per row."""

    def step(operation: str, inputs: list[str], output: str, **more: Any) -> onnx.NodeProto:
        return make_node(operation, inputs, [output], name=output, **more)

    yield step("Abs", [of], f"{of}.size")
    yield step("ReduceMax", [f"{of}.size"], f"{of}.largest", axes=[-1], keepdims=1)
    yield step("Max", [f"{of}.largest", "exact.least"], f"{of}.most")
    yield step("Mul", [f"{of}.most", "exact.1/127"], f"{of}.scale")
    yield step("Div", [of, f"{of}.scale"], f"{of}.scaled")
    yield step("Add", [f"{of}.scaled", "exact.128"], f"{of}.shifted")
    yield step("Round", [f"{of}.shifted"], f"{of}.rounded")
    yield step("Cast", [f"{of}.rounded"], f"{of}.coarse", to=onnx.TensorProto.UINT8)
    yield step("Sub", [f"{of}.shifted", f"{of}.rounded"], f"{of}.rest")
    yield step("Mul", [f"{of}.rest", "exact.256"], f"{of}.rest_scaled")
    yield step("Add", [f"{of}.rest_scaled", "exact.128"], f"{of}.rest_shifted")
    yield step("Round", [f"{of}.rest_shifted"], f"{of}.rest_rounded")
    yield step("Min", [f"{of}.rest_rounded", "exact.255"], f"{of}.rest_bounded")
    yield step("Cast", [f"{of}.rest_bounded"], f"{of}.fine", to=onnx.TensorProto.UINT8)


def _product(activations: str, stem: str, output: str) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that multiply split activations by weights."""
    for part in ("coarse", "fine"):
        inputs = [f"{activations}.{part}", f"{stem}_quantized", ZERO, f"{stem}_zero_point"]
        yield make_node("MatMulInteger", inputs, [f"{output}.{part}_whole"], name=f"{output}.{part}_whole")
        yield make_node("Cast", [f"{output}.{part}_whole"], [f"{output}.{part}"], to=onnx.TensorProto.FLOAT)
    yield make_node("Div", [f"{output}.fine", "exact.256"], [f"{output}.fine_scaled"])
    yield make_node("Add", [f"{output}.coarse", f"{output}.fine_scaled"], [f"{output}.whole"])
    yield make_node("Mul", [f"{output}.whole", f"{stem}_scale"], [f"{output}.by_column"])
    yield make_node("Mul", [f"{output}.by_column", f"{activations}.scale"], [output])
