#!/usr/bin/env python3
"""Times fused kernels through ONNX Runtime on this machine's CPU, one thread.

    foretoken profile cpu --plan > plan.csv
    python3 measure_ort.py plan.csv kernels.csv
    foretoken fit edge-kernels --data kernels.csv --whole-calls --device NAME --runtime "ONNX Runtime" ...

Needs numpy, onnx and onnxruntime. Each row is a model of one kernel, called through Python: process CPU time, least of
the samples. Kinds that this script does not build are left out, and said on standard error.
"""
import csv
import sys
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SAMPLES, SAMPLE_SECONDS, OPSET = 7, 2e-3, 13


class Graph:
    """Nodes in a row, with the tensors that come from outside."""

    def __init__(self):
        self.nodes, self.inputs, self.constants, self.count = [], {}, [], 0

    def add_input(self, *shape):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = shape
        return name

    def add_constant(self, *shape):
        name = f"c{len(self.constants)}"
        values = numpy.random.default_rng(1).random(shape, dtype=numpy.float32)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def scalar(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.float32(value), name))
        return name

    def add(self, operator, *inputs, **attributes):
        self.count += 1
        self.nodes.append(helper.make_node(operator, list(inputs), [f"t{self.count}"], **attributes))
        return f"t{self.count}"

    def model(self):
        tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.inputs.items()]
        output = helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "kernel", tensors, [output], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def convolution(graph, p, depthwise):
    side, window, stride = p["h"], p["k"], p["s"]
    groups = p["ic"] if depthwise else p.get("g", 1)
    total = max(0, (p["oh"] - 1) * stride + window - side)
    pads = [total // 2, total // 2, total - total // 2, total - total // 2]
    weights = graph.add_constant(p["oc"], p["ic"] // groups, window, window)
    out = graph.add("Conv", graph.add_input(1, p["ic"], side, side), weights, graph.add_constant(p["oc"]), group=groups,
                    kernel_shape=[window, window], strides=[stride, stride], pads=pads)
    if p.get("act") == "relu":
        graph.add("Relu", out)
    elif p.get("act") == "clip":
        graph.constants += [numpy_helper.from_array(numpy.float32(v), n) for v, n in ((0, "low"), (6, "high"))]
        graph.add("Clip", out, "low", "high")
    elif p.get("act") == "swish":
        graph.add("Mul", out, graph.add("Sigmoid", out))


def layer_norm(graph, p):
    """As exporters write it in opset 13: a chain of nine operators."""
    width = p["n"] // p["r"]
    x, mean = graph.add_input(1, p["r"], width), {"axes": [-1], "keepdims": 1}
    centered = graph.add("Sub", x, graph.add("ReduceMean", x, **mean))
    variance = graph.add("ReduceMean", graph.add("Pow", centered, graph.scalar(2)), **mean)
    deviation = graph.add("Sqrt", graph.add("Add", variance, graph.scalar(1e-5)))
    scaled = graph.add("Mul", graph.add("Div", centered, deviation), graph.add_constant(width))
    graph.add("Add", scaled, graph.add_constant(width))


def gelu(graph, p):
    x = graph.add_input(1, p["n"])
    erf = graph.add("Erf", graph.add("Div", x, graph.scalar(2**0.5)))
    graph.add("Mul", graph.add("Mul", x, graph.add("Add", erf, graph.scalar(1))), graph.scalar(0.5))


def transpose(graph, p):
    if p["t"] == 1:
        graph.add("Transpose", graph.add_input(p["n"] // 64, 64), perm=[1, 0])
    else:
        side = round((p["n"] / 64) ** 0.5)
        graph.add("Transpose", graph.add_input(side, p["n"] // 64 // side, 64), perm=[1, 0, 2])


def build(kind, p):
    """The graph of one kernel; nothing for a kind that is not built here."""
    graph = Graph()
    if kind in ("conv", "dwconv"):
        convolution(graph, p, kind == "dwconv")
    elif kind == "linear":
        product = graph.add("MatMul", graph.add_input(1, p["m"], p["k"]), graph.add_constant(p["k"], p["n"]))
        graph.add("Add", product, graph.add_constant(p["n"]))
    elif kind == "gemm1":
        graph.add("Gemm", graph.add_input(p["m"], p["k"]), graph.add_constant(p["k"], p["n"]), graph.add_constant(p["n"]))
    elif kind == "bmm":
        graph.add("MatMul", graph.add_input(p["b"], p["m"], p["k"]), graph.add_input(p["b"], p["k"], p["n"]))
    elif kind in ("add", "addrelu"):
        out = graph.add("Add", graph.add_input(p["n"]), graph.add_input(p["n"]))
        if kind == "addrelu":
            graph.add("Relu", out)
    elif kind == "semul":
        graph.add("Mul", graph.add_input(1, 64, p["n"] // 64, 1), graph.add_input(1, 64, 1, 1))
    elif kind == "concat":
        half = p["n"] // 2
        graph.add("Concat", graph.add_input(1, half), graph.add_input(1, p["n"] - half), axis=1)
    elif kind == "gap":
        graph.add("GlobalAveragePool", graph.add_input(1, 64, p["n"] // 64, 1))
    elif kind == "sigmoid":
        graph.add("Sigmoid", graph.add_input(p["n"]))
    elif kind == "maxpool":
        side = round((p["n"] / 64) ** 0.5)
        graph.add("MaxPool", graph.add_input(1, 64, side, side), kernel_shape=[p["k"], p["k"]], strides=[2, 2])
    elif kind == "scalesoftmax":
        scaled = graph.add("Mul", graph.add_input(p["r"], p["n"] // p["r"]), graph.add_constant(1))
        graph.add("Softmax", scaled, axis=-1)
    elif kind == "layernorm":
        layer_norm(graph, p)
    elif kind == "gelu":
        gelu(graph, p)
    elif kind == "transpose":
        transpose(graph, p)
    elif kind == "null":
        graph.add("Identity", graph.add_input(1))
    else:
        return None
    return graph


def least_milliseconds(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.model().SerializeToString(), options, ["CPUExecutionProvider"])
    feed = {name: numpy.ones(shape, numpy.float32) for name, shape in graph.inputs.items()}
    session.run(None, feed)
    best = float("inf")
    for _ in range(SAMPLES):
        calls, batch, start, spent = 0, 1, time.process_time(), 0.0
        while spent < SAMPLE_SECONDS:
            for _ in range(batch):
                session.run(None, feed)
            calls, batch, spent = calls + batch, batch * 2, time.process_time() - start
        best = min(best, spent / calls)
    return best * 1e3


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as plan, open(sys.argv[2], "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["kernel_id", "kind", "params", "cpu_ms_min"])
        for number, row in enumerate(csv.DictReader(plan), 1):
            pairs = [pair.split("=") for pair in row["params"].split(";") if pair]
            graph = build(row["kind"], {k: v if k == "act" else int(v) for k, v in pairs})
            if graph is None:
                print(f"left out: {row['kind']} {row['params']}", file=sys.stderr)
                continue
            writer.writerow([number, row["kind"], row["params"], f"{least_milliseconds(graph):.6g}"])


if __name__ == "__main__":
    main()
