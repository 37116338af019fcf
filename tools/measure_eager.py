#!/usr/bin/env python3
"""Times eager PyTorch operators in plain fp32 (TF32 off) with events, and writes tables that `foretoken fit kernels`
and `foretoken validate kernels` read by their columns: kernels_matmul.csv, kernels_vector.csv, kernels_conv.csv.

A time is the mean of the fastest 5 of 25 between two events around one call, inputs in the cache as the last call left
them: the host's gap is in it. `kernel_us` is the same call replayed in a graph, without that gap. Needs Python 3.8+ and
PyTorch with a GPU. Shapes depend on the seed alone.
"""
import argparse
import csv
import math
import pathlib
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F

VECTOR = {
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y, "pow": torch.pow,
    "addu": lambda x, _: x + 1.5, "mulu": lambda x, _: x * 1.5, "divu": lambda x, _: x / 1.5,
    "powu": lambda x, _: torch.pow(x, 1.5), "relu": lambda x, _: F.relu(x), "gelu": lambda x, _: F.gelu(x),
    "tanh": lambda x, _: torch.tanh(x), "softmax": lambda x, _: torch.softmax(x, -1),
    "ln": lambda x, y: F.layer_norm(x, x.shape[-1:], y[0], y[0]),
}


def log_int(stream, least, most):
    return round(math.exp(math.log(least) + stream.random() * (math.log(most) - math.log(least))))


def matmul_shapes(stream, count):
    rows = []
    while len(rows) < count:
        if stream.random() < 0.5:
            row = dict(op="linear", batch=1, m=log_int(stream, 16, 16384), n=log_int(stream, 64, 32768),
                       k=log_int(stream, 64, 16384))
        else:
            row = dict(op="bmm", batch=log_int(stream, 2, 256), m=log_int(stream, 16, 2048), n=log_int(stream, 16, 2048),
                       k=log_int(stream, 16, 2048))
        if stream.random() < 0.5:  # as most layers are
            row.update({name: max(16, row[name] // 64 * 64) for name in "mnk"})
        if 2 * row["batch"] * row["m"] * row["n"] * row["k"] < 5e11:
            rows.append(row)
    return rows


def vector_shapes(stream, count):
    rows = []
    for at in range(count):
        op = list(VECTOR)[at % len(VECTOR)]
        size = (log_int(stream, 16, 65536), log_int(stream, 16, 32768))
        while size[0] * size[1] > 1 << 28:
            size = (size[0] // 2, size[1])
        rows.append(dict(op=op, rows=size[0], cols=size[1]))
    return rows


def conv_shapes(stream, count):
    rows = []
    while len(rows) < count:
        size = stream.choice([7, 14, 28, 56, 112])
        ksize = stream.choice([1, 1, 3, 3, 3, 5, 7])
        row = dict(batch=log_int(stream, 1, 128), cin=log_int(stream, 16, 1024), cout=log_int(stream, 16, 1024),
                   ksize=ksize, in_size=size, stride=stream.choice([1, 1, 2]), pad=ksize // 2)
        work = 2 * row["batch"] * row["cin"] * row["cout"] * (ksize * size / row["stride"]) ** 2
        if work < 3e11 and row["batch"] * max(row["cin"], row["cout"]) * size * size < 1 << 29:
            rows.append(row)
    return rows


def random_tensor(*shape):
    return torch.rand(*shape, device="cuda") + 0.5


def matmul_call(op, batch, m, n, k):
    if op == "linear":
        x, w, b = random_tensor(m, k), random_tensor(n, k), random_tensor(n)
        return lambda: F.linear(x, w, b)
    x, y = random_tensor(batch, m, k), random_tensor(batch, k, n)
    return lambda: torch.bmm(x, y)


def vector_call(op, rows, cols):
    x, y = random_tensor(rows, cols), random_tensor(rows, cols)
    return lambda: VECTOR[op](x, y)


def conv_call(batch, cin, cout, ksize, in_size, stride, pad):
    x, w = random_tensor(batch, cin, in_size, in_size), random_tensor(cout, cin, ksize, ksize)
    return lambda: F.conv2d(x, w, None, stride, pad)


def event_us(call):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def graph_us(call):
    """One call inside a graph of several, which the host does not slow."""
    count = 8
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    times = []
    for _ in range(5):
        torch.cuda._sleep(100_000)
        times.append(event_us(graph.replay) / count)
    return statistics.median(times)


def time_row(call):
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    times = sorted(event_us(call) for _ in range(25))
    eager = statistics.mean(times[:5])
    time.sleep(min(0.3, 3e-5 * eager))  # let the board cool
    alone = graph_us(call)
    time.sleep(min(0.5, 1e-4 * alone))
    return eager, alone


TABLES = {"matmul": (matmul_shapes, matmul_call, 600), "vector": (vector_shapes, vector_call, 520),
          "conv": (conv_shapes, conv_call, 250)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device-name", required=True, help="what `foretoken devices` calls this GPU")
    parser.add_argument("--out", default="measured_eager", help="folder of the tables")
    parser.add_argument("--scale", type=float, default=1, help="times the usual number of rows")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    for name, (shapes, make, count) in TABLES.items():
        stream = random.Random(f"{arguments.seed}:{name}")
        rows = shapes(stream, max(1, round(count * arguments.scale)))
        began = time.perf_counter()
        with open(out / f"kernels_{name}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, ["device", *rows[0], "latency_us", "kernel_us"], lineterminator="\n")
            writer.writeheader()
            for row in rows:
                try:
                    eager, alone = time_row(make(**row))
                except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
                    print(f"{name} {row}: {str(error)[:200]}", file=sys.stderr)
                    continue
                writer.writerow({"device": arguments.device_name, **row, "latency_us": f"{eager:.5g}",
                                 "kernel_us": f"{alone:.5g}"})
        torch.cuda.empty_cache()
        print(f"{name}: {len(rows)} rows, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
