#!/usr/bin/env python3
"""Writes a PyTorch module as a graph file (docs/onnx.md) that `foretoken models FILE.graph.json` reads.

    python3 tools/export_graph.py torchvision.models:resnet18 resnet18.graph.json --input 1,3,224,224

Needs PyTorch 2.1 or newer. The module is traced with torch.export, whose graph of ATen operators carries the shape of
every tensor. Operators that mean the same in ONNX get its name and attributes; all others are written as they are
called in ATen, with their shapes, and are costed by what they read and write.
"""
import argparse
import importlib
import json

import torch

TYPES = {
    torch.float32: "float", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float64: "double",
    torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8",
    torch.bool: "bool",
}

SAME = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min",
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "gelu": "Gelu", "silu": "Swish", "erf": "Erf", "exp": "Exp",
    "log": "Log", "sqrt": "Sqrt", "neg": "Neg", "abs": "Abs", "hardtanh": "Clip", "clamp": "Clip",
    "hardswish": "HardSwish", "hardsigmoid": "HardSigmoid", "matmul": "MatMul", "mm": "MatMul", "bmm": "MatMul",
    "clone": "Identity", "detach": "Identity", "alias": "Identity", "dropout": "Identity", "contiguous": "Identity",
}


def sides(value, count):
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


def as_onnx(name, args, rank):
    """The ONNX operator, its attributes and which of the arguments are its inputs; None where there is none."""
    if name in ("conv1d", "conv2d", "conv3d", "convolution"):
        count = rank - 2
        arg = lambda i, default: args[i] if len(args) > i else default
        transposed = name == "convolution" and arg(6, False)
        if transposed or isinstance(arg(4, 0), str):
            return None
        groups = arg(8 if name == "convolution" else 6, 1)
        return "Conv", {"strides": sides(arg(3, 1), count), "pads": sides(arg(4, 0), count) * 2,
                        "dilations": sides(arg(5, 1), count), "group": groups}, args[:3]
    if name in ("max_pool2d", "max_pool2d_with_indices", "avg_pool2d"):
        kernel = sides(args[1], 2)
        stride = sides(args[2], 2) if len(args) > 2 and args[2] else kernel
        pads = sides(args[3], 2) * 2 if len(args) > 3 else [0] * 4
        operation = "AveragePool" if name == "avg_pool2d" else "MaxPool"
        return operation, {"kernel_shape": kernel, "strides": stride, "pads": pads}, args[:1]
    if name == "adaptive_avg_pool2d" and sides(args[1], 2) == [1, 1]:
        return "GlobalAveragePool", {}, args[:1]
    if name == "linear":
        return "FusedLinear", {}, args[:3]
    if name == "addmm":
        return "Gemm", {}, [args[1], args[2], args[0]]
    if name == "softmax" or name == "_softmax":
        return "Softmax", {"axis": args[1]}, args[:1]
    if name == "layer_norm" or name == "native_layer_norm":
        return "LayerNormalization", {"axis": -len(args[1])}, [args[0], *args[2:4]]
    if name in ("batch_norm", "_native_batch_norm_legit_no_training"):
        return "BatchNormalization", {}, args[:5]
    if name == "permute":
        return "Transpose", {"perm": list(args[1])}, args[:1]
    if name == "cat":
        return "Concat", {"axis": args[1] if len(args) > 1 else 0}, args[0]
    if name == "embedding":
        return "Gather", {"axis": 0}, args[:2]
    if name in ("mean", "sum") and len(args) > 1 and args[1]:
        kept = int(bool(args[2])) if len(args) > 2 else 0
        return {"mean": "ReduceMean", "sum": "ReduceSum"}[name], {"axes": list(args[1]), "keepdims": kept}, args[:1]
    if name in SAME:
        return SAME[name], {}, [a for a in args if isinstance(a, torch.fx.Node)]
    return None


VIEWS = ("view", "reshape", "flatten", "unsqueeze", "squeeze", "_unsafe_view", "expand")


class Exporter:
    def __init__(self, program, name):
        self.program = program
        self.graph = {"format": "foretoken-graph", "version": 1, "name": name,
                      "producer": "torch " + torch.__version__, "opset": 17,
                      "inputs": [], "constants": [], "nodes": [], "outputs": []}

    def describe(self, name, value):
        return {"name": name, "type": TYPES.get(value.dtype, "float"), "shape": [int(s) for s in value.shape]}

    def constant_list(self, name, values):
        self.graph["constants"].append({"name": name, "type": "int64", "shape": [len(values)], "values": values})
        return name

    def add(self, operation, inputs, outputs, name, attributes=None, domain=None):
        node = {"name": name, "op": operation, "inputs": inputs, "outputs": outputs}
        if domain:
            node["domain"] = domain
        if attributes:
            node["attributes"] = attributes
        self.graph["nodes"].append(node)

    def call(self, node):
        value = node.meta["val"]
        first = value[0] if isinstance(value, (list, tuple)) else value
        if not isinstance(first, torch.Tensor):
            return
        name = node.target.__name__.split(".")[0] if hasattr(node.target, "__name__") else str(node.target)
        if name == "getitem":
            self.add("Identity", [f"{node.args[0].name}.{node.args[1]}" if node.args[1] else node.args[0].name],
                     [self.describe(node.name, first)], node.name)
            return
        outputs = [self.describe(node.name, first)]
        if isinstance(value, (list, tuple)):
            outputs += [self.describe(f"{node.name}.{i}", v) for i, v in enumerate(value) if i and v is not None]
        if name in VIEWS and name != "expand":
            shape = self.constant_list(node.name + ".shape", outputs[0]["shape"])
            self.add("Reshape", [node.args[0].name, shape], outputs, node.name)
            return
        known = as_onnx(name, list(node.args), first.dim())
        if known is None:
            self.add(name, [a.name for a in node.all_input_nodes], outputs, node.name, domain="aten")
            return
        operation, attributes, arguments = known
        inputs = [a.name for a in arguments if isinstance(a, torch.fx.Node)]
        if operation == "FusedLinear":  # x W^T + b
            shape = self.program_shape(arguments[1])
            self.add("Transpose", [inputs[1]], [{"name": node.name + ".wt", "shape": shape[::-1]}], node.name + ".t")
            product = dict(outputs[0], name=node.name + ".mm") if len(inputs) > 2 else outputs[0]
            self.add("MatMul", [inputs[0], node.name + ".wt"], [product], node.name + ".mm")
            if len(inputs) > 2:
                self.add("Add", [node.name + ".mm", inputs[2]], outputs, node.name)
            return
        self.add(operation, inputs, outputs, node.name, attributes)

    def program_shape(self, node):
        return [int(s) for s in node.meta["val"].shape]

    def run(self):
        inputs = set(self.program.graph_signature.user_inputs)
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                described = self.describe(node.name, node.meta["val"])
                self.graph["inputs" if node.name in inputs else "constants"].append(described)
            elif node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                self.graph["outputs"] = [a.name for a in node.args[0] if isinstance(a, torch.fx.Node)]
        return self.graph


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("module", help="PACKAGE:NAME of something that makes a torch.nn.Module when called")
    parser.add_argument("file", help="what to write: NAME.graph.json")
    parser.add_argument("--input", action="append", required=True, help="sizes of an input, such as 1,3,224,224")
    parser.add_argument("--integers", action="store_true", help="inputs are token numbers")
    options = parser.parse_args()
    package, name = options.module.split(":")
    module = getattr(importlib.import_module(package), name)().eval()
    shapes = [[int(s) for s in text.split(",")] for text in options.input]
    inputs = tuple(torch.zeros(s, dtype=torch.int64) if options.integers else torch.zeros(s) for s in shapes)
    program = torch.export.export(module, inputs)
    with open(options.file, "w") as out:
        json.dump(Exporter(program, name).run(), out, indent=1)


if __name__ == "__main__":
    main()
