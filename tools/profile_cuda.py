#!/usr/bin/env python3
"""Measures the kernels of language models on one GPU; writes CSV files that `foretoken fit` and `validate` read.

Needs Python 3.8+ and PyTorch with CUDA or ROCm, whose GPUs PyTorch calls cuda too; Triton kernels are timed where Triton is installed. `--plan` needs neither.

How one row is timed: the call is captured into a CUDA graph many times over different buffers; the graph is replayed
several times, each time after reading a buffer of several times the L2 cache, so that no input is in the cache; one
timing is (elapsed - start of an empty graph) / calls. This is done in several rounds with other buffers, and the row is
the median of the rounds' medians. Inputs are normally distributed random numbers. The device rests between timings, so
that these are times of a cool board at full clock; the family `sustained` has the other end. Finished rows are on disk
at once: a run that was stopped goes on where it ended.
"""
import argparse
import contextlib
import csv
import ctypes
import datetime
import difflib
import functools
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import threading
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None
try:
    import triton
    import triton.language as tl
except Exception:  # a broken Triton must not stop the rest
    triton = None

VERSION = 1
HIP = torch is not None and bool(getattr(torch.version, "hip", None))  # PyTorch for AMD's GPUs
GIB = 1 << 30
REST = 3.0  # idle time after a timing, relative to it: without, large multiplies run into the power limit

# ---------------------------------------------------------------------------------------------------------------------
# The plan: which rows to measure. Depends on the seed and the scale only, never on the device.


class Stream:
    """Random numbers of one family; the same on every platform and Python version."""

    def __init__(self, seed, name):
        self.random = random.Random(f"{seed}:{name}")

    def uniform(self):
        return self.random.random()

    def chance(self, probability):
        return self.uniform() < probability

    def pick(self, values):
        return values[int(self.uniform() * len(values))]

    def weighted(self, pairs):
        at = self.uniform() * sum(weight for _, weight in pairs)
        for value, weight in pairs:
            at -= weight
            if at < 0:
                return value
        return pairs[-1][0]

    def log_int(self, least, most):
        return round(math.exp(math.log(least) + self.uniform() * (math.log(most) - math.log(least))))

    def tokens(self, least, most):
        """Log-uniform; half of them powers of two, as batches and chunks mostly are."""
        value = self.log_int(least, most)
        return max(least, 1 << round(math.log2(value))) if self.chance(0.5) else value

    def multiple(self, least, most):
        """Log-uniform sizes of weight matrices: mostly multiples of 128, some of 64, 16 and 8."""
        step = self.weighted([(128, 70), (64, 15), (16, 10), (8, 5)])
        return max(step, round(self.log_int(least, most) / step) * step)


# hidden, heads, kv_heads, head_dim, inter, vocabulary of published models, 0.3B to 405B.
MODELS = [
    (4096, 32, 8, 128, 14336, 128256), (8192, 64, 8, 128, 28672, 128256), (16384, 128, 8, 128, 53248, 128256),
    (2048, 32, 8, 64, 8192, 128256), (3584, 28, 4, 128, 18944, 152064), (5120, 40, 8, 128, 27648, 152064),
    (2560, 32, 8, 128, 9728, 151936), (2880, 64, 8, 64, 2880, 201088), (3584, 16, 8, 256, 14336, 256000),
    (3072, 32, 32, 96, 8192, 32064), (12288, 96, 8, 128, 28672, 32768), (1024, 16, 16, 64, 4096, 30528),
    (7168, 128, 128, 128, 18432, 129280), (4096, 32, 32, 128, 11008, 32000),
]
WIDTHS = sorted({model[0] for model in MODELS} | {1536, 6144, 768})
VOCABULARIES = sorted({model[5] for model in MODELS})


def layer_gemm(stream):
    """n and k of one linear layer of a published model, cut for tensor parallelism."""
    hidden, heads, kv_heads, head_dim, inter, vocabulary = stream.pick(MODELS)
    tp = stream.pick([1, 1, 2, 4, 8])
    kind = stream.weighted([("qkv", 25), ("o", 20), ("up", 25), ("down", 25), ("head", 5)])
    heads, kv_heads = max(1, heads // tp), max(1, kv_heads // tp)
    if kind == "qkv":
        return (heads + 2 * kv_heads) * head_dim, hidden
    if kind == "o":
        return hidden, heads * head_dim
    if kind == "up":
        return 2 * (inter // tp), hidden
    if kind == "down":
        return hidden, inter // tp
    return vocabulary // tp, hidden


def gemm_row(stream, kernel, dtype):
    m = stream.tokens(1, 16384)
    how = stream.uniform()
    if how < 0.4:
        n, k = layer_gemm(stream)
    elif how < 0.5:
        n, k = (1 << stream.pick(range(7, 16)) for _ in range(2))
    else:
        n, k = stream.multiple(128, 32768), stream.multiple(128, 32768)
    aligned = 16 if dtype == "fp8" else 8
    if n % aligned or k % aligned or 2 * m * n * k > 4e12:
        return None
    return {"kernel": kernel, "dtype": dtype, "m": m, "n": n, "k": k, "caches": "cold"}


def odd_gemm_row(stream):
    """n or k, or both, that vector loads of 16 bytes do not divide: what an unpadded vocabulary or head looks like."""
    row = gemm_row(stream, "torch_linear", "bf16")
    if not row:
        return None
    for name in stream.pick([("n",), ("k",), ("n", "k")]):
        row[name] += stream.pick([1, 1, 2, 3, 4, 4, 6])
    return row


def attention_heads(stream):
    if stream.chance(0.5):
        _, heads, kv_heads, head_dim, _, _ = stream.pick(MODELS)
        tp = stream.pick([1, 1, 2, 4, 8])
        return max(1, heads // tp), max(1, kv_heads // tp), head_dim
    kv_heads = stream.pick([1, 2, 4, 8, 16, 32])
    heads = min(128, kv_heads * stream.pick([1, 1, 2, 4, 6, 8, 16]))
    return heads - heads % kv_heads, kv_heads, stream.weighted([(128, 65), (64, 25), (96, 4), (256, 6)])


def prefill_row(stream):
    heads, kv_heads, head_dim = attention_heads(stream)
    batch, length = stream.tokens(1, 64), stream.tokens(16, 32768)
    if batch * length > 131072 or 2 * batch * heads * head_dim * length * length > 1.5e12:
        return None
    return {"kernel": stream.pick(["sdpa_flash", "sdpa_cudnn"]), "kv_dtype": "bf16", "batch": batch, "heads": heads,
            "kv_heads": kv_heads, "head_dim": head_dim, "q_len": length, "kv_len": length, "window": 0,
            "writes_kv": "no"}


def decode_row(stream):
    heads, kv_heads, head_dim = attention_heads(stream)
    batch, length = stream.tokens(1, 512), stream.tokens(16, 131072)
    if 4 * batch * length * kv_heads * head_dim > 3 * GIB:
        return None
    return {"kernel": stream.pick(["sdpa_flash", "sdpa_cudnn"]), "kv_dtype": "bf16", "batch": batch, "heads": heads,
            "kv_heads": kv_heads, "head_dim": head_dim, "q_len": 1, "kv_len": length, "window": 0, "writes_kv": "no"}


def heads_first(make):
    """Rows of `make` with K and V as [batch, heads, tokens, dim]: where a framework's cache has grown by joining tensors."""
    def row(stream):
        made = make(stream)
        return made and dict(made, kernel=made["kernel"] + "_heads_first")
    return row


def drawn_with_heads_first(count, more, make):
    def points(seed, name, scale):
        added = drawn(more, heads_first(make))(seed, name + " heads first", scale)
        return drawn(count, make)(seed, name, scale) + added
    return points


def encoder_row(stream):
    heads, head_dim = stream.pick([(12, 64), (16, 64), (16, 80), (16, 128), (8, 64), (4, 64), (20, 64)])
    batch, length = stream.tokens(1, 128), stream.tokens(16, 8192)
    if batch * length > 131072 or 4 * batch * heads * head_dim * length * length > 1.5e12:
        return None
    return {"kernel": stream.pick(["sdpa_flash", "sdpa_cudnn"]), "dtype": "bf16", "batch": batch, "heads": heads,
            "head_dim": head_dim, "q_len": length, "kv_len": length}


def width_of(stream):
    return stream.pick(WIDTHS) if stream.chance(0.6) else stream.multiple(512, 16384)


def norm_row(stream):
    kernel, op, residual = stream.weighted([(("triton", "rms", "no"), 30), (("triton", "rms", "yes"), 30),
                                            (("torch_eager", "rms", "no"), 20), (("torch_eager", "layer", "no"), 20)])
    rows, width = stream.tokens(1, 32768), width_of(stream)
    return {"kernel": kernel, "dtype": "bf16", "rows": rows, "width": width, "op": op, "residual": residual}


def rope_row(stream):
    _, heads, kv_heads, head_dim, _, _ = stream.pick(MODELS)
    tp = stream.pick([1, 1, 2, 4, 8])
    return {"kernel": stream.weighted([("triton", 2), ("torch_eager", 1)]), "dtype": "bf16",
            "tokens": stream.tokens(1, 16384), "heads": max(1, heads // tp), "kv_heads": max(1, kv_heads // tp),
            "rotary_dim": head_dim}


def activation_row(stream):
    kernel, gated = stream.weighted([(("triton", "yes"), 3), (("torch_eager", "yes"), 1), (("torch_gelu", "no"), 1)])
    width = stream.pick(MODELS)[4] // stream.pick([1, 2, 4, 8]) if stream.chance(0.6) else stream.multiple(512, 32768)
    return {"kernel": kernel, "dtype": "bf16", "rows": stream.tokens(1, 16384), "width": width, "gated": gated}


def kv_write_row(stream):
    _, _, kv_heads, head_dim, _, _ = stream.pick(MODELS)
    values = 2 * max(1, kv_heads // stream.pick([1, 1, 2, 4, 8])) * head_dim
    kernel, kv_dtype = stream.weighted([(("triton", "bf16"), 2), (("triton", "fp8"), 1),
                                        (("torch_index_copy", "bf16"), 2)])
    return {"kernel": kernel, "dtype": "bf16", "kv_dtype": kv_dtype, "tokens": stream.tokens(1, 16384),
            "values": values}


def embedding_row(stream):
    model = stream.pick(MODELS)
    return {"kernel": "torch_embedding", "dtype": "bf16", "tokens": stream.tokens(1, 32768), "width": model[0],
            "vocabulary": model[5]}


def sampling_row(stream):
    kernel, dtype, greedy, most = stream.weighted([(("torch_argmax", "fp32", "yes", 512), 2),
                                                   (("torch_argmax", "bf16", "yes", 512), 1),
                                                   (("torch_top_p_sort", "fp32", "no", 256), 1)])
    return {"kernel": kernel, "dtype": dtype, "rows": stream.tokens(1, most), "vocabulary": stream.pick(VOCABULARIES),
            "greedy": greedy}


def softmax_row(stream):
    rows, width = stream.tokens(1, 65536), stream.tokens(32, 131072)
    if rows * width > 1 << 29:
        return None
    kernel = stream.pick(["torch_softmax", "torch_log_softmax", "torch_log_softmax_backward"])
    dtype = stream.weighted([("bf16", 2), ("fp32", 1)]) if kernel == "torch_softmax" else "fp32"
    return {"kernel": kernel, "dtype": dtype, "rows": rows, "width": width}


# Tensors read and written per element, in units of the row's dtype; a reduction writes next to nothing.
EAGER_KERNELS = {
    "torch_add": (2, 1), "torch_mul_scalar": (1, 1), "torch_broadcast": (1, 1), "torch_cat": (1, 1),
    "torch_cat_cache": (1, 1), "torch_strided": (1, 1), "torch_cast_up": (1, 2), "torch_cast_down": (2, 1),
    "torch_mean": (1, 0), "torch_sum_rows": (1, 0), "torch_fill": (0, 1), "torch_adam_fused": (4, 3),
}


def elementwise_row(stream):
    kernel = stream.weighted([(name, 2 if name in ("torch_broadcast", "torch_cat", "torch_mean") else 1)
                              for name in EAGER_KERNELS])
    inputs, outputs = EAGER_KERNELS[kernel]
    dtype = stream.weighted([("bf16", 2), ("fp32", 1)])
    if kernel in ("torch_cast_up", "torch_cast_down", "torch_cat_cache", "torch_sum_rows", "torch_adam_fused"):
        dtype = "bf16"
    if kernel == "torch_mean":
        dtype = "fp32"
    elements = stream.log_int(1 << 9, 1 << 18) * 8 if stream.chance(0.4) else stream.log_int(1 << 20, 1 << 28)
    return {"kernel": kernel, "dtype": dtype, "elements": max(16384, elements // 8192 * 8192), "inputs": inputs,
            "outputs": outputs}


def expand_row(stream):
    """Heads of K or V repeated for the query heads that share them; counted as elements written."""
    elements = stream.log_int(1 << 16, 1 << 28)
    return {"kernel": "torch_expand", "dtype": stream.weighted([("bf16", 2), ("fp32", 1)]),
            "elements": max(16384, elements // 8192 * 8192), "inputs": 1, "outputs": 1}


def elementwise_points(seed, name, scale):
    return drawn(180, elementwise_row)(seed, name, scale) + drawn(12, expand_row)(seed, name + " expand", scale)


def quantize_row(stream):
    m, k = stream.tokens(1, 16384), width_of(stream)
    return {"kernel": "triton", "op": "static_quant", "m": m, "k": k}


def grouped_gemm_row(stream):
    groups, n, k = stream.pick([(8, 28672, 4096), (8, 4096, 14336), (128, 1536, 2048), (128, 2048, 768),
                                (128, 3072, 4096), (128, 4096, 1536), (32, 4096, 7168), (32, 7168, 2048),
                                (32, 5760, 2880), (32, 2880, 2880), (16, 16384, 5120), (16, 5120, 8192),
                                (64, 2816, 2048), (64, 2048, 1408), (256, 512, 2048), (256, 2048, 256)])
    m = stream.tokens(1, 65536)
    if 2 * m * n * k > 3e12:
        return None
    kernel, dtype = stream.weighted([(("grouped_mm", "bf16"), 2), (("scaled_grouped_mm_row", "fp8"), 1)])
    return {"kernel": kernel, "dtype": dtype, "groups": groups, "m": m, "n": n, "k": k,
            "routing": stream.pick(["balanced", "pl1.2"])}


def draw(stream, count, make):
    """`count` different rows; make() gives None for a shape that is too large or does not fit together."""
    rows, seen = [], set()
    for _ in range(count * 200):
        row = make(stream)
        key = row and tuple(row.values())
        if row and key not in seen:
            seen.add(key)
            rows.append(row)
        if len(rows) == count:
            break
    return rows


def drawn(count, make):
    return lambda seed, name, scale: draw(Stream(seed, name), max(1, round(count * scale)), make)


def drawn_with_compiled(count, compiled, make):
    """Rows of `make`, and beside them rows of the kernels that torch.compile makes for the same operator."""
    def points(seed, name, scale):
        stream = Stream(seed, name + " compiled")
        more = draw(stream, max(1, round(compiled * scale)), lambda one: compiled_row(make(one), one))
        return drawn(count, make)(seed, name, scale) + more
    return points


def compiled_row(row, stream):
    row = dict(row, kernel="torch_compiled")
    if "residual" in row:
        row.update(residual=stream.pick(["no", "yes", "yes"]), op=stream.pick(["rms", "rms", "layer"]))
    return row


def gemm_points(seed, _name, scale):
    kinds = [("torch_linear", "bf16", 400), ("torch_linear", "fp16", 150), ("scaled_mm_tensor", "fp8", 170),
             ("scaled_mm_row", "fp8", 80)]
    rows = []
    for kernel, dtype, count in kinds:
        stream = Stream(seed, f"gemm {kernel} {dtype}")
        rows += draw(stream, max(1, round(count * scale)), lambda s, k=kernel, d=dtype: gemm_row(s, k, d))
    rows += drawn(90, odd_gemm_row)(seed, "gemm odd", scale)
    # In random order, so that a run cut short by its time has some of each.
    Stream(seed, "gemm order").random.shuffle(rows)
    return rows


def copy_points(_seed, _name, _scale):
    return [{"bytes": size} for power in range(8, 32) for size in (1 << power, 3 << (power - 1))]


def host_copy_points(_seed, _name, _scale):
    return [{"kind": kind, "bytes": 1 << power} for power in range(10, 30, 2) for kind in ("h2d", "d2h")]


LAUNCH_KINDS = ["graph_node", "graph_node_add", "graph_start", "graph_launch_host_1", "graph_launch_host_100",
                "graph_launch_host_1000", "eager_host_add", "eager_host_linear", "eager_host_layer_norm",
                "eager_host_silu", "eager_host_sdpa_flash", "eager_host_index_copy", "eager_host_triton",
                "eager_period_add", "synchronize", "item"]


def launch_points(_seed, _name, _scale):
    return [{"kind": kind} for kind in LAUNCH_KINDS]


def gemm_shape(kernel, dtype, m, n, k):
    return "gemm", {"kernel": kernel, "dtype": dtype, "m": m, "n": n, "k": k}


def attention_shape(family, kernel, batch, q_len, kv_len, heads=32, kv_heads=8, head_dim=128):
    return family, {"kernel": kernel, "kv_dtype": "bf16", "batch": batch, "heads": heads, "kv_heads": kv_heads,
                    "head_dim": head_dim, "q_len": q_len, "kv_len": kv_len, "window": 0, "writes_kv": "no"}


def layer_shapes(tokens, batch, kv_len, kernel="sdpa_flash"):
    """One layer of an 8B model: `batch` sequences of tokens/batch new tokens."""
    q_len = tokens // batch
    family = "attention_decode" if q_len == 1 else "attention_prefill"
    norm = ("norm", {"kernel": "torch_eager", "dtype": "bf16", "rows": tokens, "width": 4096, "op": "rms",
                     "residual": "no"})
    activation = ("activation", {"kernel": "torch_eager", "dtype": "bf16", "rows": tokens, "width": 14336,
                                 "gated": "yes"})
    gemms = [gemm_shape("torch_linear", "bf16", tokens, n, k)
             for n, k in [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]]
    return [norm, gemms[0], attention_shape(family, kernel, batch, q_len, kv_len), gemms[1], norm, gemms[2], activation,
            gemms[3]]


# What runs for seconds on end: name -> calls, one after another.
SUSTAINED = {
    "gemm_bf16_8192": [gemm_shape("torch_linear", "bf16", 8192, 8192, 8192)],
    "gemm_bf16_4096": [gemm_shape("torch_linear", "bf16", 4096, 4096, 4096)],
    "gemm_bf16_2048x28672x4096": [gemm_shape("torch_linear", "bf16", 2048, 28672, 4096)],
    "gemm_bf16_256x28672x4096": [gemm_shape("torch_linear", "bf16", 256, 28672, 4096)],
    "gemm_bf16_128x8192x8192": [gemm_shape("torch_linear", "bf16", 128, 8192, 8192)],
    "gemm_bf16_16x8192x28672": [gemm_shape("torch_linear", "bf16", 16, 8192, 28672)],
    "gemm_bf16_1x4096x4096": [gemm_shape("torch_linear", "bf16", 1, 4096, 4096)],
    "gemm_fp16_8192": [gemm_shape("torch_linear", "fp16", 8192, 8192, 8192)],
    "gemm_fp8_8192": [gemm_shape("scaled_mm_tensor", "fp8", 8192, 8192, 8192)],
    "gemm_fp8_512x28672x8192": [gemm_shape("scaled_mm_tensor", "fp8", 512, 28672, 8192)],
    "gemm_fp8_64x8192x28672": [gemm_shape("scaled_mm_tensor", "fp8", 64, 8192, 28672)],
    "prefill_flash_4x4096": [attention_shape("attention_prefill", "sdpa_flash", 4, 4096, 4096)],
    "prefill_cudnn_4x4096": [attention_shape("attention_prefill", "sdpa_cudnn", 4, 4096, 4096)],
    "prefill_cudnn_1x16384": [attention_shape("attention_prefill", "sdpa_cudnn", 1, 16384, 16384)],
    "decode_flash_64x4096": [attention_shape("attention_decode", "sdpa_flash", 64, 1, 4096)],
    "decode_flash_8x1024": [attention_shape("attention_decode", "sdpa_flash", 8, 1, 1024)],
    "copy_1GiB": [("copy", {"bytes": GIB})],
    "copy_4MiB": [("copy", {"bytes": 4 << 20})],
    "norm_8192x8192": [("norm", {"kernel": "torch_eager", "dtype": "bf16", "rows": 8192, "width": 8192, "op": "rms",
                                 "residual": "no"})],
    "softmax_8192x32768": [("softmax", {"kernel": "torch_softmax", "dtype": "bf16", "rows": 8192, "width": 32768})],
    "layer_prefill_2x2048": layer_shapes(4096, 2, 2048),
    "layer_decode_64x2048": layer_shapes(64, 64, 2048),
}

USUAL_SUSTAINED = list(SUSTAINED)


def pause_shape(microseconds):
    return "pause", {"us": microseconds}


def norm_shape(kernel, rows, width, op="rms", residual="no"):
    return "norm", {"kernel": kernel, "dtype": "bf16", "rows": rows, "width": width, "op": op, "residual": residual}


def grouped_shape(kernel, dtype, groups, m, n, k):
    return "grouped_gemm", {"kernel": kernel, "dtype": dtype, "groups": groups, "m": m, "n": n, "k": k,
                            "routing": "balanced"}


# More of them with --scale 2 or more: enough to fit the energy of a board, and to check it on kernels left out.
for _m, _n, _k in [(1, 28672, 8192), (8, 4096, 14336), (32, 28672, 8192), (64, 6144, 4096), (64, 4096, 4096),
                   (512, 4096, 4096), (512, 8192, 8192), (1024, 1024, 1024), (2048, 2048, 2048), (16384, 4096, 4096),
                   (128, 128256, 4096), (4096, 4096, 128), (256, 4096, 14336), (1024, 8192, 1024)]:
    SUSTAINED[f"gemm_bf16_{_m}x{_n}x{_k}"] = [gemm_shape("torch_linear", "bf16", _m, _n, _k)]
for _m, _n, _k in [(4096, 4096, 4096), (16, 28672, 8192), (256, 8192, 8192), (2048, 4096, 14336), (1, 8192, 8192)]:
    SUSTAINED[f"gemm_fp8_{_m}x{_n}x{_k}"] = [gemm_shape("scaled_mm_tensor", "fp8", _m, _n, _k)]
for _m, _n, _k in [(8192, 8192, 8192), (128, 8192, 28672)]:
    SUSTAINED[f"gemm_fp8_row_{_m}x{_n}x{_k}"] = [gemm_shape("scaled_mm_row", "fp8", _m, _n, _k)]
SUSTAINED.update({
    "gemm_fp16_256x28672x4096": [gemm_shape("torch_linear", "fp16", 256, 28672, 4096)],
    "grouped_bf16_8x4096": [grouped_shape("grouped_mm", "bf16", 8, 4096, 28672, 4096)],
    "grouped_bf16_128x512": [grouped_shape("grouped_mm", "bf16", 128, 512, 1536, 2048)],
    "grouped_fp8_8x4096": [grouped_shape("scaled_grouped_mm_row", "fp8", 8, 4096, 28672, 4096)],
    "prefill_flash_16x512": [attention_shape("attention_prefill", "sdpa_flash", 16, 512, 512)],
    "prefill_flash_1x8192": [attention_shape("attention_prefill", "sdpa_flash", 1, 8192, 8192)],
    "prefill_cudnn_16x512": [attention_shape("attention_prefill", "sdpa_cudnn", 16, 512, 512)],
    "prefill_cudnn_8x2048_heads_of_64": [attention_shape("attention_prefill", "sdpa_cudnn", 8, 2048, 2048, 16, 16, 64)],
    "decode_cudnn_64x4096": [attention_shape("attention_decode", "sdpa_cudnn", 64, 1, 4096)],
    "decode_flash_128x1024": [attention_shape("attention_decode", "sdpa_flash", 128, 1, 1024)],
    "decode_flash_16x32768": [attention_shape("attention_decode", "sdpa_flash", 16, 1, 32768)],
    "decode_flash_1x8192": [attention_shape("attention_decode", "sdpa_flash", 1, 1, 8192)],
    "encoder_cudnn_16x1024": [("attention_encoder", {"kernel": "sdpa_cudnn", "dtype": "bf16", "batch": 16, "heads": 16,
                                                     "head_dim": 64, "q_len": 1024, "kv_len": 1024})],
    "copy_16MiB": [("copy", {"bytes": 16 << 20})],
    "copy_256MiB": [("copy", {"bytes": 256 << 20})],
    "norm_triton_4096x4096": [norm_shape("triton", 4096, 4096, residual="yes")],
    "norm_layer_1024x5120": [norm_shape("torch_eager", 1024, 5120, "layer")],
    "activation_triton_4096x14336": [("activation", {"kernel": "triton", "dtype": "bf16", "rows": 4096, "width": 14336,
                                                     "gated": "yes"})],
    "activation_gelu_8192x8192": [("activation", {"kernel": "torch_gelu", "dtype": "bf16", "rows": 8192, "width": 8192,
                                                  "gated": "no"})],
    "rope_triton_8192": [("rope", {"kernel": "triton", "dtype": "bf16", "tokens": 8192, "heads": 32, "kv_heads": 8,
                                   "rotary_dim": 128})],
    "add_256Mi": [("elementwise", {"kernel": "torch_add", "dtype": "bf16", "elements": 1 << 28, "inputs": 2,
                                   "outputs": 1})],
    "add_1Mi": [("elementwise", {"kernel": "torch_add", "dtype": "bf16", "elements": 1 << 20, "inputs": 2,
                                 "outputs": 1})],
    "embedding_8192x8192": [("embedding", {"kernel": "torch_embedding", "dtype": "bf16", "tokens": 8192, "width": 8192,
                                           "vocabulary": 128256})],
    "quantize_8192x8192": [("quantize_fp8", {"kernel": "triton", "op": "static_quant", "m": 8192, "k": 8192})],
    "argmax_256x128256": [("sampling", {"kernel": "torch_argmax", "dtype": "fp32", "rows": 256, "vocabulary": 128256,
                                        "greedy": "yes"})],
    "layer_prefill_cudnn_1x4096": layer_shapes(4096, 1, 4096, "sdpa_cudnn"),
    "layer_prefill_8x512": layer_shapes(4096, 8, 512),
    "layer_prefill_1x256": layer_shapes(256, 1, 256),
    "layer_decode_8x1024": layer_shapes(8, 8, 1024),
    "layer_decode_256x1024": layer_shapes(256, 256, 1024),
    "pause": [pause_shape(100)],
    "gemm_bf16_4096_and_pause": [gemm_shape("torch_linear", "bf16", 4096, 4096, 4096), pause_shape(170)],
    "copy_64MiB_and_pause": [("copy", {"bytes": 64 << 20}), pause_shape(60)],
})


def sustained_points(_seed, _name, scale):
    return [{"name": name} for name in (SUSTAINED if scale >= 2 else USUAL_SUSTAINED)]


class Family:
    def __init__(self, points, columns, seconds_per_row):
        self.points = points
        self.columns = columns.split()
        self.seconds_per_row = seconds_per_row  # on an H200, for the estimate only


ATTENTION_COLUMNS = "kernel kv_dtype batch heads kv_heads head_dim q_len kv_len window writes_kv"
SUSTAINED_RESULTS = ["family", "shape", "flops", "bytes", "burst_us", "sustained_us", "power_w", "sampled_power_w",
                     "sm_clock_mhz", "memory_clock_mhz", "temperature_c", "limits", "idle_w"]
FAMILIES = {
    "launch": Family(launch_points, "kind", 0.15),
    "copy": Family(copy_points, "bytes", 0.03),
    "host_copy": Family(host_copy_points, "kind bytes", 0.06),
    "gemm": Family(gemm_points, "kernel dtype m n k caches", 0.035),
    "grouped_gemm": Family(drawn(90, grouped_gemm_row), "kernel dtype groups m n k routing", 0.04),
    "attention_prefill": Family(drawn_with_heads_first(200, 40, prefill_row), ATTENTION_COLUMNS, 0.09),
    "attention_decode": Family(drawn_with_heads_first(200, 80, decode_row), ATTENTION_COLUMNS, 0.09),
    "attention_encoder": Family(drawn(60, encoder_row), "kernel dtype batch heads head_dim q_len kv_len", 0.08),
    "norm": Family(drawn_with_compiled(120, 50, norm_row), "kernel dtype rows width op residual", 0.04),
    "rope": Family(drawn_with_compiled(60, 40, rope_row), "kernel dtype tokens heads kv_heads rotary_dim", 0.08),
    "activation": Family(drawn_with_compiled(80, 50, activation_row), "kernel dtype rows width gated", 0.03),
    "kv_write": Family(drawn(80, kv_write_row), "kernel dtype kv_dtype tokens values", 0.04),
    "embedding": Family(drawn(60, embedding_row), "kernel dtype tokens width vocabulary", 0.03),
    "sampling": Family(drawn(70, sampling_row), "kernel dtype rows vocabulary greedy", 0.04),
    "softmax": Family(drawn(90, softmax_row), "kernel dtype rows width", 0.03),
    "attention_backward": Family(drawn(80, prefill_row), ATTENTION_COLUMNS, 0.15),
    "elementwise": Family(elementwise_points, "kernel dtype elements inputs outputs", 0.03),
    "quantize_fp8": Family(drawn(50, quantize_row), "kernel op m k", 0.03),
    "sustained": Family(sustained_points, "name", 5.0),
}
REPEATED_PER_FAMILY = 6  # rows timed a second time at the end, into repeat.csv


def make_plan(seed, scale, families, probe=0):
    plan = {name: FAMILIES[name].points(seed, name, scale) for name in families}
    return {name: probed(rows, probe) for name, rows in plan.items() if name != "sustained"} if probe else plan


def probed(rows, count):
    """`count` rows of each kernel and number format; rows without a kernel (launch, copy) all stay."""
    seen, kept = {}, []
    for row in rows:
        key = tuple(row.get(name) for name in ("kernel", "dtype", "kv_dtype"))
        seen[key] = seen.get(key, 0) + 1
        if "kernel" not in row or seen[key] <= count:
            kept.append(row)
    return kept


# ---------------------------------------------------------------------------------------------------------------------
# Files: one CSV per family, appended row by row.


class InputError(Exception):
    pass


class Table:
    """<out>/<name>.csv. Knows which rows are there; a half-written last line is cut off."""

    def __init__(self, folder, name, keys, results):
        self.path = os.path.join(folder, name + ".csv")
        self.keys = keys
        self.columns = keys + results
        self.done = {}
        if os.path.exists(self.path):
            self._load()

    def _load(self):
        with open(self.path, "rb") as file:
            data = file.read()
        whole = data[:data.rfind(b"\n") + 1]
        if len(whole) != len(data):
            with open(self.path, "wb") as file:
                file.write(whole)
        lines = list(csv.reader(whole.decode().splitlines()))
        if not lines:
            os.remove(self.path)
            return
        if lines[0] != self.columns:
            raise InputError(f"{self.path}: columns {','.join(lines[0])}\n  expected {','.join(self.columns)}; "
                             "choose another --out or remove the file")
        for line in lines[1:]:
            self.done[tuple(line[:len(self.keys)])] = line[len(self.keys):]

    def key(self, row):
        return tuple(str(row[column]) for column in self.keys)

    def has(self, row):
        return self.key(row) in self.done

    def add(self, row, *results):
        new = not os.path.exists(self.path)
        texts = [f"{value:.5g}" if isinstance(value, float) else str(value) for value in results]
        with open(self.path, "a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(self.columns)
            writer.writerow(list(self.key(row)) + texts)
        self.done[self.key(row)] = texts


def row_text(row):
    return " ".join(f"{name}={value}" for name, value in row.items())


# ---------------------------------------------------------------------------------------------------------------------
# The board: power, clocks, temperature. NVML through its C library; nvidia-smi where that cannot be loaded. AMD's
# driver has files for them.

# Reasons that NVML gives for a clock below the highest one.
LIMIT_BITS = {0x4: "power_cap", 0x8: "hw_slowdown", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake"}


POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT; the plain reading is an average over a second on newer boards


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t"""
    _fields_ = [("field", ctypes.c_uint), ("scope", ctypes.c_uint), ("timestamp", ctypes.c_longlong),
                ("latency", ctypes.c_longlong), ("kind", ctypes.c_int), ("code", ctypes.c_int),
                ("value", ctypes.c_ulonglong)]


class Board:
    def __init__(self, index, uuid):
        self.index = str(uuid) if uuid else str(index)
        self.nvml = self.handle = None
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            handle = ctypes.c_void_p()
            if nvml.nvmlInit_v2() != 0:
                raise OSError("NVML does not start")
            found = uuid and nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) == 0
            if not found and nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
                raise OSError("NVML does not know the device")
            self.nvml, self.handle = nvml, handle
        except OSError:
            pass

    def _read(self, function, *arguments, kind=ctypes.c_uint):
        value = kind()
        try:
            code = getattr(self.nvml, function)(self.handle, *arguments, ctypes.byref(value))
        except AttributeError:
            return None
        return value.value if code == 0 else None

    def _smi(self, fields):
        try:
            text = subprocess.run(["nvidia-smi", "-i", self.index, "--query-gpu=" + ",".join(fields),
                                   "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=10,
                                  check=True).stdout
            parts = [part.strip() for part in text.strip().split("\n")[0].split(",")]
            return [float(part) if part.replace(".", "", 1).isdigit() else None for part in parts]
        except (OSError, subprocess.SubprocessError):
            return [None] * len(fields)

    def _instant_power(self):
        field = FieldValue(field=POWER_INSTANT)
        try:
            code = self.nvml.nvmlDeviceGetFieldValues(self.handle, 1, ctypes.byref(field))
        except AttributeError:
            return None
        return field.value & 0xffffffff if code == 0 and field.code == 0 else None

    def sample(self):
        """power W, SM clock MHz, memory clock MHz, temperature C, limit bits; None where unknown."""
        if self.nvml is None:
            power, sm, memory, temperature = self._smi(["power.draw", "clocks.sm", "clocks.mem", "temperature.gpu"])
            return power, sm, memory, temperature, 0
        power = self._instant_power() or self._read("nvmlDeviceGetPowerUsage")
        reasons = self._read("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        return (power / 1000 if power is not None else None, self._read("nvmlDeviceGetClockInfo", 1),
                self._read("nvmlDeviceGetClockInfo", 2), self._read("nvmlDeviceGetTemperature", 0), reasons or 0)

    def energy_joules(self):
        if self.nvml is None:
            return None
        value = self._read("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong)
        return value / 1000 if value is not None else None

    def facts(self):
        if self.nvml is None:
            limit, sm, memory = self._smi(["power.limit", "clocks.max.sm", "clocks.max.mem"])
            return {"power_limit_w": limit, "max_sm_clock_mhz": sm, "max_memory_clock_mhz": memory,
                    "memory_bus_bits": None}
        limit = self._read("nvmlDeviceGetEnforcedPowerLimit")
        return {"power_limit_w": limit / 1000 if limit else None,
                "max_sm_clock_mhz": self._read("nvmlDeviceGetMaxClockInfo", 1),
                "max_memory_clock_mhz": self._read("nvmlDeviceGetMaxClockInfo", 2),
                "memory_bus_bits": self._read("nvmlDeviceGetMemoryBusWidth")}

    def power_capped(self):
        reasons = self.nvml and self._read("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        return bool(reasons and reasons & 0x4)

    def driver(self):
        if self.nvml is not None:
            text = ctypes.create_string_buffer(96)
            if self.nvml.nvmlSystemGetDriverVersion(text, 96) == 0:
                return text.value.decode()
        try:
            return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                                  capture_output=True, text=True, timeout=10, check=True).stdout.split("\n")[0].strip()
        except (OSError, subprocess.SubprocessError):
            return None


class AmdBoard:
    """The same from the files of the amdgpu driver (hwmon, pp_dpm_*); None for what is not there."""

    def __init__(self, properties):
        self.properties = properties
        address = "%04x:%02x:%02x.0" % tuple(getattr(properties, "pci_" + part, 0)
                                             for part in ("domain_id", "bus_id", "device_id"))
        self.folder = os.path.join("/sys/bus/pci/devices", address)
        hwmon = os.path.join(self.folder, "hwmon")
        names = sorted(os.listdir(hwmon)) if os.path.isdir(hwmon) else []
        self.hwmon = os.path.join(hwmon, names[0]) if names else None

    def _number(self, name, unit):
        """In units of `unit` of the file's."""
        try:
            with open(os.path.join(self.hwmon, name)) as file:
                return int(file.read()) / unit
        except (OSError, TypeError, ValueError):
            return None

    def _highest_mhz(self, name):
        """Of lines like `1: 2100Mhz *`."""
        try:
            with open(os.path.join(self.folder, name)) as file:
                clocks = [line.split()[1].lower().rstrip("mhz") for line in file if len(line.split()) > 1]
            return max((int(clock) for clock in clocks if clock.isdigit()), default=None)
        except OSError:
            return None

    def sample(self):
        power = self._number("power1_average", 1e6) or self._number("power1_input", 1e6)
        cap = self._number("power1_cap", 1e6)
        limits = 0x4 if power and cap and power > 0.98 * cap else 0
        return (power, self._number("freq1_input", 1e6), self._number("freq2_input", 1e6),
                self._number("temp1_input", 1e3), limits)

    def energy_joules(self):
        return self._number("energy1_input", 1e6)

    def facts(self):
        return {"power_limit_w": self._number("power1_cap", 1e6), "max_sm_clock_mhz": self._highest_mhz("pp_dpm_sclk"),
                "max_memory_clock_mhz": self._highest_mhz("pp_dpm_mclk"),
                "memory_bus_bits": getattr(self.properties, "memory_bus_width", None)}

    def power_capped(self):
        return bool(self.sample()[4])

    def driver(self):
        try:
            with open("/sys/module/amdgpu/version") as file:
                return file.read().strip()
        except OSError:
            return None


class Sampler(threading.Thread):
    """Reads the board ten to twenty times a second."""

    def __init__(self, board):
        super().__init__(daemon=True)
        self.board = board
        self.samples = []  # (seconds, sample)
        self.energy = []   # (seconds, joules), each time the counter has moved
        self.halt = threading.Event()

    def run(self):
        while not self.halt.is_set():
            self.samples.append((time.perf_counter(), self.board.sample()))
            for _ in range(5):
                joules = self.board.energy_joules()
                if joules is not None and (not self.energy or joules != self.energy[-1][1]):
                    self.energy.append((time.perf_counter(), joules))
                self.halt.wait(0.01)

    def stop(self):
        self.halt.set()
        self.join()

    def power(self, begin, end):
        """Mean by the energy counter between its first and last steps in the window; else of the samples; W."""
        steps = [step for step in self.energy[1:] if begin <= step[0] <= end]
        if len(steps) > 5:
            return (steps[-1][1] - steps[0][1]) / (steps[-1][0] - steps[0][0])
        return mean_of([sample for sample in self.samples if begin <= sample[0] <= end], 0)


def mean_of(samples, field):
    values = [sample[field] for _, sample in samples if sample[field] is not None]
    return statistics.fmean(values) if values else None


# ---------------------------------------------------------------------------------------------------------------------
# Fused kernels as serving engines have them.

if triton is not None:

    @triton.jit
    def rms_norm_kernel(x, weight, out, width, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * width
        columns = tl.arange(0, BLOCK)
        inside = columns < width
        value = tl.load(x + at + columns, mask=inside, other=0.0).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / width + 1e-6)
        gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + at + columns, (value * scale * gain).to(tl.bfloat16), mask=inside)

    @triton.jit
    def add_rms_norm_kernel(x, residual, weight, out, width, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * width
        columns = tl.arange(0, BLOCK)
        inside = columns < width
        value = tl.load(x + at + columns, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(residual + at + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(residual + at + columns, value.to(tl.bfloat16), mask=inside)
        scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / width + 1e-6)
        gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + at + columns, (value * scale * gain).to(tl.bfloat16), mask=inside)

    @triton.jit
    def turn_heads(x, cos, sin, heads, dim, HEADS: tl.constexpr, HALF: tl.constexpr):
        head = tl.arange(0, HEADS)[:, None]
        column = tl.arange(0, HALF)[None, :]
        inside = (head < heads) & (column < dim // 2)
        low = x + head * dim + column
        first = tl.load(low, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(low + dim // 2, mask=inside, other=0.0).to(tl.float32)
        tl.store(low, (first * cos - second * sin).to(tl.bfloat16), mask=inside)
        tl.store(low + dim // 2, (second * cos + first * sin).to(tl.bfloat16), mask=inside)

    @triton.jit
    def rope_kernel(q, k, table, positions, heads, kv_heads, dim, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
                    HALF: tl.constexpr):
        token = tl.program_id(0).to(tl.int64)
        column = tl.arange(0, HALF)
        inside = column < dim // 2
        entry = table + tl.load(positions + token) * dim
        cos = tl.load(entry + column, mask=inside, other=0.0).to(tl.float32)[None, :]
        sin = tl.load(entry + dim // 2 + column, mask=inside, other=0.0).to(tl.float32)[None, :]
        turn_heads(q + token * heads * dim, cos, sin, heads, dim, HEADS, HALF)
        turn_heads(k + token * kv_heads * dim, cos, sin, kv_heads, dim, KV_HEADS, HALF)

    @triton.jit
    def silu_mul_kernel(x, out, width, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = columns < width
        gate = tl.load(x + row * 2 * width + columns, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(x + row * 2 * width + width + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * width + columns, (gate * tl.sigmoid(gate) * up).to(tl.bfloat16), mask=inside)

    @triton.jit
    def kv_write_kernel(k, v, k_cache, v_cache, slots, width, BLOCK: tl.constexpr):
        token = tl.program_id(0).to(tl.int64)
        slot = tl.load(slots + token)
        columns = tl.arange(0, BLOCK)
        inside = columns < width
        key = tl.load(k + token * width + columns, mask=inside, other=0.0)
        value = tl.load(v + token * width + columns, mask=inside, other=0.0)
        tl.store(k_cache + slot * width + columns, key.to(k_cache.dtype.element_ty), mask=inside)
        tl.store(v_cache + slot * width + columns, value.to(v_cache.dtype.element_ty), mask=inside)

    @triton.jit
    def quantize_kernel(x, out, scale, count, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = at < count
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * tl.load(scale)
        value = tl.minimum(tl.maximum(value, -448.0), 448.0)
        tl.store(out + at, value.to(out.dtype.element_ty), mask=inside)


def next_power(value):
    return 1 << (value - 1).bit_length()


def warps(block):
    return 4 if block <= 2048 else 8 if block <= 8192 else 16


# ---------------------------------------------------------------------------------------------------------------------
# Calls to be timed.


class Skip(Exception):
    """This row cannot be measured here; the text says why."""


class Case:
    """make() gives the buffers of one call, call(*buffers) does it and returns what must stay alive meanwhile."""

    def __init__(self, make, call, flops, bytes_moved, context=contextlib.nullcontext, in_graph=True,
                 compiles=False):
        self.make, self.call, self.flops, self.bytes, self.context = make, call, flops, bytes_moved, context
        self.in_graph, self.compiles = in_graph, compiles  # torch.compile may look at each buffer anew


class Queue:
    """Calls queued one by one, where a graph would do something else; stands in for a captured graph."""

    def __init__(self, calls):
        self.calls = calls

    def replay(self):
        for call in self.calls:
            call()


class Pools:
    """Random data by type. Buffers are cut from it in turn, so that successive calls read different memory."""

    def __init__(self, device, seed):
        self.device = device
        self.pools = {}
        self.random = random.Random(seed)

    def clear(self):
        self.pools.clear()
        torch.cuda.empty_cache()

    def take(self, dtype, *shape, written=False):
        """Written buffers come from memory of their own, so that random inputs stay as they were drawn."""
        name = (dtype, written)
        if name not in self.pools:
            self.pools[name] = [self._fill(dtype, written), 0]
        pool, at = self.pools[name]
        count = math.prod(shape)
        if count > pool.numel():
            raise Skip(f"needs a buffer of {count * pool.element_size() / GIB:.1f} GiB")
        if at + count > pool.numel():
            at = 0
        # Gaps of random size: buffers a round number of bytes apart can meet in the same memory banks.
        step = 1024 // pool.element_size()
        gap = int(self.random.random() * (8192 if count >= 4096 * step else 64))
        self.pools[name][1] = (at + count + step - 1) // step * step + gap * step
        return pool[at:at + count].view(shape)

    def _fill(self, dtype, written):
        free, _ = torch.cuda.mem_get_info(self.device)
        large = 10 * GIB if dtype is torch.bfloat16 and not written else 5 * GIB
        size = min(large, int(free * 0.3)) // torch.empty((), dtype=dtype).element_size()
        pool = torch.empty(size, dtype=dtype, device=self.device)
        if dtype in (torch.int8, torch.uint8):
            return pool.random_()
        if pool.element_size() > 1:
            return pool.normal_()
        for start in range(0, size, 1 << 28):
            part = pool[start:start + (1 << 28)]
            part.copy_(torch.empty(part.numel(), dtype=torch.bfloat16, device=self.device).normal_())
        return pool


class Bench:
    def __init__(self, arguments, board):
        self.board = board
        self.device = torch.device("cuda", arguments.device)
        torch.cuda.set_device(self.device)
        torch.manual_seed(arguments.seed)
        # cuBLAS keeps a workspace per stream: warm-up, capture and replay share this one.
        torch.cuda.set_stream(torch.cuda.Stream(self.device))
        self.properties = torch.cuda.get_device_properties(self.device)
        self.capability = (self.properties.major, self.properties.minor)
        self.l2_bytes = getattr(self.properties, "L2_cache_size", 0) or 64 << 20
        self.clock_hz = (board.facts()["max_sm_clock_mhz"] or 1500) * 1e6
        self.repeats, self.rounds = arguments.repeats, arguments.rounds
        self.pools = Pools(self.device, arguments.seed)
        self.types = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
        fp8 = self._fp8_type()
        if fp8 is not None:
            self.types["fp8"] = fp8
        # AMD's Infinity Cache (256 MiB on MI300) lies behind the L2 that the driver names.
        cached = max(self.l2_bytes, 256 << 20) if HIP else self.l2_bytes
        self.flush_buffer = torch.zeros(5 * cached // 4, dtype=torch.float32, device=self.device)
        self.one = torch.ones((), dtype=torch.float32, device=self.device)
        self.gqa = {name: self._has_gqa(name) for name in ("sdpa_flash", "sdpa_cudnn")}
        # Keeps the memory of captured graphs for the next one.
        self.graph_pool = torch.cuda.graph_pool_handle()
        self.anchor = self._capture([lambda: torch.cuda._sleep(1)])[0]
        self.wrong = dict(self.wrong_kernels()) if triton is not None else {}
        self._wake()
        self.start_us = self._measure_start()

    def _fp8_type(self):
        """What the device multiplies in; None = nothing of 8 bits."""
        if HIP:  # CDNA3 has a format of its own
            name = {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}.get(self.architecture())
        else:
            name = "float8_e4m3fn" if self.capability >= (8, 9) else None
        return getattr(torch, name, None) if name else None

    def architecture(self):
        """gfx942 of gfx942:sramecc+:xnack-; empty for NVIDIA's GPUs."""
        return getattr(self.properties, "gcnArchName", "").split(":")[0] if HIP else ""

    def _wake(self):
        x = torch.randn(4096, 4096, device=self.device, dtype=torch.bfloat16)
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            for _ in range(20):
                x @ x
            torch.cuda.synchronize()

    def adapt(self, family, row):
        """The row with the kernel that this machine has for it; Skip when there is none."""
        kernel = row.get("kernel", "")
        if kernel == "triton" and triton is None:
            raise Skip("Triton is not installed")
        if kernel == "triton" and family in self.wrong:
            raise Skip(self.wrong[family])
        if "fp8" in (row.get("dtype"), row.get("kv_dtype")) or family == "quantize_fp8":
            if "fp8" not in self.types:
                raise Skip("no fp8 on this device or in this PyTorch")
        if HIP and kernel.startswith("sdpa_cudnn"):
            kernel = kernel.replace("sdpa_cudnn", "sdpa_flash")
            row = dict(row, kernel=kernel)
        backend = kernel.replace("_heads_first", "")
        if backend in self.gqa and row.get("kv_heads", row["heads"]) != row["heads"] and not self.gqa[backend]:
            return dict(row, kernel=kernel.replace(backend, backend + "_expanded"))
        if kernel == "grouped_mm" and (not hasattr(torch, "_grouped_mm") or self.capability < (8, 0)):
            return dict(row, kernel="bmm_padded")
        grouped_fp8 = hasattr(torch, "_scaled_grouped_mm") and self.capability >= (9, 0)
        if kernel == "scaled_grouped_mm_row" and not grouped_fp8:
            raise Skip("no grouped fp8 multiply on this device or in this PyTorch")
        return row

    # -- timing

    def _capture(self, calls):
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        graph.capture_begin(pool=self.graph_pool, capture_error_mode="thread_local")
        try:
            kept = [call() for call in calls]
        finally:
            graph.capture_end()
        return graph, kept

    def _prepare(self, calls, in_graph):
        return self._capture(calls) if in_graph else (Queue(calls), None)

    def _elapsed_us(self, graph):
        """One replay with cold caches. The spin gives the host time to queue everything behind it."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(200_000)
        torch.sum(self.flush_buffer)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        elapsed_us = start.elapsed_time(end) * 1000
        time.sleep(REST * elapsed_us * 1e-6)
        return elapsed_us

    def _cool(self):
        """Waits, but not for long, until the board is off its power limit."""
        for _ in range(20):
            if not self.board.power_capped():
                return
            time.sleep(0.025)

    def _measure_start(self):
        times = []
        for count in (1, 65):
            graph, _ = self._capture([lambda: torch.cuda._sleep(1)] * count)
            times.append(statistics.median(self._elapsed_us(graph) for _ in range(25)))
        self.node_us = (times[1] - times[0]) / 64
        return max(0.0, times[0] - self.node_us)

    def _time_once(self, case, buffers):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        case.call(*buffers)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000

    def measure(self, case, target_us=600, most=64):
        """Microseconds of one call, cold caches."""
        with case.context():
            sets = [case.make()]
            case.call(*sets[0])  # compiles, chooses algorithms
            rough = min(self._time_once(case, sets[0]) for _ in range(2))
            count = max(1, min(most, round(target_us / max(rough, 1.0)), 3 * GIB // max(case.bytes, 1)))
            medians = []
            for _ in range(self.rounds):
                sets = [case.make() for _ in range(count)]
                for buffers in sets if case.compiles else []:
                    case.call(*buffers)
                graph, kept = self._prepare([lambda s=s: case.call(*s) for s in sets], case.in_graph)
                graph.replay()
                self._cool()
                times = [(self._elapsed_us(graph) - self.start_us) / count for _ in range(self.repeats)]
                medians.append(statistics.median(times))
                del graph, kept
        return statistics.median(medians)

    def recover(self):
        """After an error: gives memory back."""
        self.anchor = None
        self.pools.clear()
        self.anchor = self._capture([lambda: torch.cuda._sleep(1)])[0]

    # -- cases by family

    def case(self, family, row):
        return getattr(self, family + "_case")(**row)

    def take(self, dtype, *shape, written=False):
        return self.pools.take(self.types.get(dtype, dtype), *shape, written=written)

    def gemm_case(self, kernel, dtype, m, n, k, caches="cold"):
        flops, size = 2 * m * n * k, (m * k + n * k) * (1 if dtype == "fp8" else 2) + 2 * m * n
        make = lambda: (self.take(dtype, m, k), self.take(dtype, n, k))
        if kernel == "torch_linear":
            return Case(make, F.linear, flops, size)
        rows = kernel == "scaled_mm_row"
        scale_a = torch.ones(m, 1, device=self.device) if rows else self.one
        scale_b = torch.ones(1, n, device=self.device) if rows else self.one

        def call(x, w):
            return torch._scaled_mm(x, w.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16,
                                    use_fast_accum=True)
        return Case(make, call, flops, size)

    def group_ends(self, groups, m, routing):
        exponent = 0.0 if routing == "balanced" else float(routing[2:])
        shares = [(i + 1) ** -exponent for i in range(groups)]
        running, ends = 0.0, []
        for share in shares:
            running += share
            ends.append(round(m * running / sum(shares)))
        return ends

    def grouped_gemm_case(self, kernel, dtype, groups, m, n, k, routing):
        ends = self.group_ends(groups, m, routing)
        sizes = [end - start for start, end in zip([0] + ends, ends)]
        used = sum(1 for size in sizes if size)
        flops = 2 * m * n * k
        moved = (m * k + used * n * k) * (1 if dtype == "fp8" else 2) + 2 * m * n
        if kernel == "bmm_padded":
            rows = max(sizes)
            return Case(lambda: (self.take(dtype, groups, rows, k), self.take(dtype, groups, n, k).transpose(1, 2)),
                        torch.bmm, flops, moved)
        offsets = torch.tensor(ends, dtype=torch.int32, device=self.device)
        make = lambda: (self.take(dtype, m, k), self.take(dtype, groups, n, k).transpose(1, 2))
        if kernel == "grouped_mm":
            return Case(make, lambda x, w: torch._grouped_mm(x, w, offs=offsets), flops, moved)
        scale_a = torch.ones(m, device=self.device)
        scale_b = torch.ones(groups, n, device=self.device)

        def call(x, w):
            return torch._scaled_grouped_mm(x, w, scale_a, scale_b, offs=offsets, out_dtype=torch.bfloat16,
                                            use_fast_accum=True)
        return Case(make, call, flops, moved)

    def _backend(self, kernel):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        backend = SDPBackend.FLASH_ATTENTION if kernel.startswith("sdpa_flash") else SDPBackend.CUDNN_ATTENTION
        return lambda: sdpa_kernel(backend)

    def _has_gqa(self, kernel):
        q = torch.zeros(1, 4, 64, 64, device=self.device, dtype=torch.bfloat16)
        try:
            with self._backend(kernel)():
                F.scaled_dot_product_attention(q, q[:, :2], q[:, :2], is_causal=True, enable_gqa=True)
            return True
        except (TypeError, RuntimeError):
            return False

    def _attention(self, kernel, batch, heads, kv_heads, head_dim, q_len, kv_len, causal):
        stored_heads = heads if "_expanded" in kernel else kv_heads
        options = {"enable_gqa": True} if stored_heads != heads else {}

        def stored():
            if kernel.endswith("_heads_first"):
                return self.take("bf16", batch, stored_heads, kv_len, head_dim)
            return self.take("bf16", batch, kv_len, stored_heads, head_dim).transpose(1, 2)

        def make():
            return self.take("bf16", batch, q_len, heads, head_dim).transpose(1, 2), stored(), stored()
        pairs = q_len * kv_len / 2 if causal else q_len * kv_len
        return Case(make, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal, **options),
                    round(4 * batch * heads * head_dim * pairs),
                    4 * batch * head_dim * (q_len * heads + kv_len * stored_heads), self._backend(kernel))

    def attention_prefill_case(self, kernel, kv_dtype, batch, heads, kv_heads, head_dim, q_len, kv_len, window,
                               writes_kv):
        return self._attention(kernel, batch, heads, kv_heads, head_dim, q_len, kv_len, True)

    def attention_decode_case(self, kernel, kv_dtype, batch, heads, kv_heads, head_dim, q_len, kv_len, window,
                              writes_kv):
        return self._attention(kernel, batch, heads, kv_heads, head_dim, q_len, kv_len, False)

    def attention_encoder_case(self, kernel, dtype, batch, heads, head_dim, q_len, kv_len):
        return self._attention(kernel, batch, heads, heads, head_dim, q_len, kv_len, False)

    @functools.cached_property
    def compiled(self):
        """What torch.compile makes for any shape of these functions, by name."""
        rms = lambda x, w: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w
        layer = lambda x, w: F.layer_norm(x, x.shape[-1:], w, w)

        def add_rms(x, stream, w):
            stream = stream + x
            return rms(stream, w), stream

        def add_layer(x, stream, w):
            stream = stream + x
            return layer(stream, w), stream

        def turn(x):
            half = x.shape[-1] // 2
            return torch.cat((-x[..., half:], x[..., :half]), -1)

        def rope(q, k, cos, sin):
            return q * cos + turn(q) * sin, k * cos + turn(k) * sin

        def gate(x):
            a, b = x.chunk(2, -1)
            return F.silu(a) * b
        functions = {"rms": rms, "rms_add": add_rms, "layer": layer, "layer_add": add_layer, "rope": rope, "gate": gate,
                     "gelu": lambda x: F.gelu(x, approximate="tanh")}
        return {name: torch.compile(function, dynamic=True) for name, function in functions.items()}

    def norm_case(self, kernel, dtype, rows, width, op, residual):
        weight = self.take(dtype, width).clone()
        moved = rows * width * (8 if residual == "yes" else 4)
        make = lambda: (self.take(dtype, rows, width),)
        if kernel == "torch_compiled":
            norm = self.compiled[op + ("_add" if residual == "yes" else "")]
            arguments = (lambda: (self.take(dtype, rows, width), self.take(dtype, rows, width))) \
                if residual == "yes" else make
            return Case(arguments, lambda *inputs: norm(*inputs, weight), 5 * rows * width, moved,
                        compiles=True)
        if op == "layer":
            return Case(make, lambda x: F.layer_norm(x, (width,), weight, weight), 8 * rows * width, moved)
        if kernel == "torch_eager":
            return Case(make, lambda x: F.rms_norm(x, (width,), weight, 1e-6), 4 * rows * width, moved)
        block = next_power(width)
        if residual == "no":
            def call(x):
                out = torch.empty_like(x)
                rms_norm_kernel[(rows,)](x, weight, out, width, BLOCK=block, num_warps=warps(block))
                return out
            return Case(make, call, 4 * rows * width, moved)

        def call_with_add(x, stream):
            out = torch.empty_like(x)
            add_rms_norm_kernel[(rows,)](x, stream, weight, out, width, BLOCK=block, num_warps=warps(block))
            return out
        return Case(lambda: (self.take(dtype, rows, width), self.take(dtype, rows, width, written=True)), call_with_add,
                    5 * rows * width, moved)

    def rope_case(self, kernel, dtype, tokens, heads, kv_heads, rotary_dim):
        angles = torch.arange(32768, device=self.device)[:, None] * torch.rand(rotary_dim // 2, device=self.device)
        table = torch.cat((angles.cos(), angles.sin()), dim=1).to(self.types[dtype])
        moved = 4 * tokens * (heads + kv_heads) * rotary_dim + 2 * tokens * rotary_dim

        if kernel == "torch_compiled":  # queries and keys lie in the output of one multiply, as engines have it
            cos = torch.cat((table[:tokens], table[:tokens]), -1)[:, None, :rotary_dim].contiguous()

            def call(qkv):
                q, k, _ = qkv.split([heads, kv_heads, kv_heads], 1)
                return self.compiled["rope"](q, k, cos, cos)
            return Case(lambda: (self.take(dtype, tokens, heads + 2 * kv_heads, rotary_dim),), call,
                        3 * tokens * (heads + kv_heads) * rotary_dim, moved, compiles=True)

        def make():
            return (self.take(dtype, tokens, heads, rotary_dim, written=True),
                    self.take(dtype, tokens, kv_heads, rotary_dim, written=True),
                    torch.randint(32768, (tokens,), device=self.device))

        def fused(q, k, positions):
            rope_kernel[(tokens,)](q, k, table, positions, heads, kv_heads, rotary_dim, HEADS=next_power(heads),
                                   KV_HEADS=next_power(kv_heads), HALF=next_power(rotary_dim // 2))

        def turn(x, cos, sin):
            first, second = x.chunk(2, dim=-1)
            return x * cos + torch.cat((-second, first), dim=-1) * sin

        def eager(q, k, positions):
            cos, sin = table[positions].chunk(2, dim=-1)
            cos, sin = torch.cat((cos, cos), -1)[:, None], torch.cat((sin, sin), -1)[:, None]
            return turn(q, cos, sin), turn(k, cos, sin)
        return Case(make, fused if kernel == "triton" else eager, 3 * tokens * (heads + kv_heads) * rotary_dim, moved)

    def activation_case(self, kernel, dtype, rows, width, gated):
        if kernel == "torch_compiled":
            function = self.compiled["gate" if gated == "yes" else "gelu"]
            inputs = 2 if gated == "yes" else 1
            return Case(lambda: (self.take(dtype, rows, inputs * width),), function, 6 * rows * width,
                        2 * (inputs + 1) * rows * width, compiles=True)
        if gated == "no":
            return Case(lambda: (self.take(dtype, rows, width),), F.gelu, 8 * rows * width, 4 * rows * width)

        def fused(x):
            out = torch.empty(rows, width, dtype=x.dtype, device=x.device)
            silu_mul_kernel[(rows, triton.cdiv(width, 1024))](x, out, width, BLOCK=1024)
            return out
        eager = lambda x: F.silu(x[:, :width]) * x[:, width:]
        return Case(lambda: (self.take(dtype, rows, 2 * width),), fused if kernel == "triton" else eager,
                    6 * rows * width, 6 * rows * width)

    def kv_write_case(self, kernel, dtype, kv_dtype, tokens, values):
        width = values // 2
        per_cache = min(1 << 29, GIB // 2)
        slots_held = per_cache // width
        k_cache = self.take(kv_dtype, slots_held, width, written=True)
        v_cache = self.take(kv_dtype, slots_held, width, written=True)
        block = 16  # tokens

        def make():
            blocks = torch.randperm(slots_held // block, device=self.device)
            if tokens <= 512:  # decode: each token in a block of its own
                slots = blocks[:tokens] * block + torch.randint(block, (tokens,), device=self.device)
            else:
                offsets = torch.arange(block, device=self.device)
                slots = (blocks[:-(-tokens // block), None] * block + offsets).flatten()[:tokens]
            return self.take(dtype, tokens, width), self.take(dtype, tokens, width), slots.contiguous()

        def fused(k, v, slots):
            size = next_power(width)
            kv_write_kernel[(tokens,)](k, v, k_cache, v_cache, slots, width, BLOCK=size, num_warps=warps(size))

        def eager(k, v, slots):
            k_cache.index_copy_(0, slots, k)
            v_cache.index_copy_(0, slots, v)
        return Case(make, fused if kernel == "triton" else eager, 0,
                    tokens * values * (2 + (1 if kv_dtype == "fp8" else 2)))

    def embedding_case(self, kernel, dtype, tokens, width, vocabulary):
        table = self.take(dtype, vocabulary, width)
        return Case(lambda: (torch.randint(vocabulary, (tokens,), device=self.device),),
                    lambda tokens_: F.embedding(tokens_, table), 0, 4 * tokens * width)

    def sampling_case(self, kernel, dtype, rows, vocabulary, greedy):
        make = lambda: (self.take(dtype, rows, vocabulary),)
        size = rows * vocabulary * (4 if dtype == "fp32" else 2)
        if greedy == "yes":
            return Case(make, lambda logits: torch.argmax(logits, dim=-1), rows * vocabulary, size)

        def call(logits):
            ordered, indices = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
            kept = torch.where(ordered.cumsum(dim=-1) - ordered > 0.9, 0.0, ordered)
            chosen = (kept / torch.empty_like(kept).exponential_()).argmax(dim=-1, keepdim=True)
            return indices.gather(-1, chosen)
        return Case(make, call, 20 * rows * vocabulary, size)

    def softmax_case(self, kernel, dtype, rows, width):
        size = 4 if dtype == "fp32" else 2
        if kernel == "torch_log_softmax_backward":
            make = lambda: (self.take(dtype, rows, width), self.take(dtype, rows, width))
            call = lambda gradient, out: torch.ops.aten._log_softmax_backward_data(gradient, out, -1, out.dtype)
            return Case(make, call, 5 * rows * width, 3 * rows * width * size)
        function = torch.softmax if kernel == "torch_softmax" else torch.log_softmax
        return Case(lambda: (self.take(dtype, rows, width),), lambda x: function(x, dim=-1), 5 * rows * width,
                    2 * rows * width * size)

    def elementwise_case(self, kernel, dtype, elements, inputs, outputs):
        size = 4 if dtype == "fp32" else 2
        width = next(w for w in (4096, 2048, 1024, 512, 256, 128) if elements % w == 0)
        rows = elements // width
        moved = (inputs + outputs) * elements * size
        plain = lambda: (self.take(dtype, elements),)
        matrix = lambda: (self.take(dtype, rows, width),)
        heads = lambda: (self.take(dtype, 1, elements // 1024, 8, 128).transpose(1, 2),)
        if kernel == "torch_add":
            return Case(lambda: (self.take(dtype, elements), self.take(dtype, elements)), torch.add, elements, moved)
        if kernel == "torch_expand":
            heads_of = lambda: (self.take(dtype, 1, 8, elements // 4096, 128),)
            return Case(heads_of, lambda x: x[:, :, None].expand(-1, -1, 4, -1, -1).reshape(1, 32, -1, 128), 0, moved)
        if kernel == "torch_mul_scalar":
            return Case(plain, lambda x: torch.mul(x, 1.5), elements, moved)
        if kernel == "torch_broadcast":  # by a weight (bf16) or by a scale for each row (fp32), as eager norms do
            other = self.take(dtype, 1, width) if dtype == "bf16" else self.take(dtype, rows, 1)
            return Case(matrix, lambda x: x * other, elements, moved)
        if kernel == "torch_cat":  # halves of each head swapped, as eager rotary embeddings do
            return Case(heads, lambda x: torch.cat((x[..., 64:], x[..., :64]), -1), 0, moved)
        if kernel == "torch_cat_cache":  # one token more for a cache of 16 sequences or fewer
            batch = next(b for b in (16, 8, 4, 2, 1) if elements % (1024 * b) == 0)
            make = lambda: (self.take(dtype, batch, 8, elements // 1024 // batch, 128), self.take(dtype, batch, 8, 1, 128))
            return Case(make, lambda cache, new: torch.cat((cache, new), 2), 0, moved)
        if kernel == "torch_strided":
            return Case(heads, lambda x: -x, elements, moved)
        if kernel == "torch_cast_up":
            return Case(plain, lambda x: x.float(), elements, moved)
        if kernel == "torch_cast_down":
            return Case(lambda: (self.take("fp32", elements),), lambda x: x.bfloat16(), elements, moved)
        if kernel == "torch_mean":
            return Case(matrix, lambda x: x.mean(-1, keepdim=True), elements, moved)
        if kernel == "torch_sum_rows":
            return Case(matrix, lambda x: x.sum(0), elements, moved)
        if kernel == "torch_fill":
            return Case(lambda: (self.take(dtype, elements, written=True),), lambda x: x.zero_(), 0, moved)
        make = lambda: tuple([self.take(dtype, elements, written=True)] for _ in range(4))
        step = torch.ones((), device=self.device)
        adam = lambda p, g, m, v: torch._fused_adamw_(p, g, m, v, [], [step], lr=1e-6, beta1=0.9, beta2=0.999,
                                                      weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)
        return Case(make, adam, 12 * elements, moved)

    def attention_backward_case(self, kernel, kv_dtype, batch, heads, kv_heads, head_dim, q_len, kv_len, window,
                                writes_kv):
        backend = torch.nn.attention.SDPBackend.CUDNN_ATTENTION if kernel == "sdpa_cudnn" \
            else torch.nn.attention.SDPBackend.FLASH_ATTENTION

        def make():
            shapes = [(batch, heads, q_len, head_dim)] + 2 * [(batch, kv_heads, kv_len, head_dim)]
            inputs = [self.take("bf16", *shape).detach().requires_grad_() for shape in shapes]
            with torch.nn.attention.sdpa_kernel(backend), torch.enable_grad():
                out = F.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=heads != kv_heads)
            return out, inputs, self.take("bf16", *shapes[0])
        call = lambda out, inputs, gradient: torch.autograd.grad(out, inputs, gradient, retain_graph=True)
        pairs = batch * heads * q_len * kv_len / 2
        return Case(make, call, 10 * pairs * head_dim, 2 * (4 * heads + 4 * kv_heads) * batch * q_len * head_dim)

    def quantize_fp8_case(self, kernel, op, m, k):
        def call(x):
            out = torch.empty(m, k, dtype=self.types["fp8"], device=self.device)
            quantize_kernel[(triton.cdiv(m * k, 4096),)](x, out, self.one, m * k, BLOCK=4096, num_warps=8)
            return out
        return Case(lambda: (self.take("bf16", m, k),), call, m * k, 3 * m * k)

    def copy_case(self, bytes):
        return Case(lambda: (self.take(torch.uint8, bytes, written=True), self.take(torch.uint8, bytes)),
                    lambda target, source: target.copy_(source), 0, 2 * bytes,
                    in_graph=bytes < 512 << 20)  # graph nodes copy more than that at two thirds of the rate (H200)

    def pause_case(self, us):
        """The device waits, one thread apart, as between kernels that the host launches too late."""
        return Case(lambda: (), lambda: torch.cuda._sleep(round(us * 1e-6 * self.clock_hz)), 0, 0)

    def wrong_kernels(self):
        """Families whose Triton kernels do not give what PyTorch gives, or do not run: (family, why)."""
        wrong = []
        for family in ("norm", "rope", "activation", "kv_write", "quantize_fp8"):
            if family == "quantize_fp8" and "fp8" not in self.types:
                continue
            try:
                pairs = getattr(self, "_check_" + family)()
                for ours, reference in pairs:
                    difference = (ours.float() - reference.float()).norm() / reference.float().norm()
                    if not difference.item() < 0.01:
                        wrong.append((family, f"the Triton kernel is off by {difference.item():.2g} here"))
                        break
            except Exception as error:  # Triton's compiler has its own kinds
                wrong.append((family, f"the Triton kernel does not run: {type(error).__name__}: {error}"))
        self.pools.clear()
        return wrong

    def _check_norm(self):
        rows, width = 33, 1000
        x, stream, weight = (self.take("bf16", *shape).clone() for shape in ((rows, width), (rows, width), (width,)))
        plain, added, total = torch.empty_like(x), torch.empty_like(x), stream.clone()
        rms_norm_kernel[(rows,)](x, weight, plain, width, BLOCK=1024, num_warps=4)
        add_rms_norm_kernel[(rows,)](x, total, weight, added, width, BLOCK=1024, num_warps=4)
        norm = lambda value: F.rms_norm(value.float(), (width,), weight.float(), 1e-6)
        return [(plain, norm(x)), (added, norm(x.float() + stream.float())), (total, x + stream)]

    def _check_rope(self):
        cases = []
        for kernel in ("triton", "torch_eager"):
            torch.manual_seed(1)  # the same angles
            cases.append(self.rope_case(kernel, "bf16", 37, 6, 3, 96))
        q, k, positions = cases[0].make()
        expected = cases[1].call(q.clone(), k.clone(), positions)
        cases[0].call(q, k, positions)
        return list(zip((q, k), expected))

    def _check_activation(self):
        fused, eager = (self.activation_case(kernel, "bf16", 5, 1500, "yes") for kernel in ("triton", "torch_eager"))
        x, = fused.make()
        return [(fused.call(x), eager.call(x))]

    def _check_kv_write(self):
        tokens, width = 7, 96
        k, v = self.take("bf16", tokens, width), self.take("bf16", tokens, width)
        slots = torch.randperm(64, device=self.device)[:tokens]
        caches = [torch.zeros(64, width, dtype=torch.bfloat16, device=self.device) for _ in range(2)]
        expected = [cache.index_copy(0, slots, new) for cache, new in zip(caches, (k, v))]
        kv_write_kernel[(tokens,)](k, v, *caches, slots, width, BLOCK=128, num_warps=4)
        return list(zip(caches, expected))

    def _check_quantize_fp8(self):
        case = self.quantize_fp8_case("triton", "static_quant", 33, 1000)
        x, = case.make()
        return [(case.call(x), x.to(self.types["fp8"]))]

    # -- rows that are not one call

    def host_copy(self, kind, bytes):
        host = torch.empty(bytes, dtype=torch.uint8, pin_memory=True)
        host.random_() if bytes <= 1 << 24 else host.zero_()
        on_device = torch.empty(bytes, dtype=torch.uint8, device=self.device)
        target, source = (on_device, host) if kind == "h2d" else (host, on_device)
        count = max(1, min(10, (32 << 20) // bytes))
        times = []
        for _ in range(10):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(1_000_000)
            start.record()
            for _ in range(count):
                target.copy_(source, non_blocking=True)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1000 / count)
        return statistics.median(times[1:])

    def _host_us(self, call, count=500):
        """Host time of one asynchronous call, while the device keeps up."""
        times = []
        for _ in range(8):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(count):
                call()
            times.append((time.perf_counter() - start) * 1e6 / count)
            torch.cuda.synchronize()
        return statistics.median(times[1:])

    def launch(self, kind):
        small = torch.randn(64, 64, device=self.device, dtype=torch.bfloat16)
        add = lambda: torch.add(small, small)
        tiny = lambda: torch.cuda._sleep(1)
        if kind == "graph_start":
            return self.start_us
        if kind in ("graph_node", "graph_node_add"):
            call = add if kind.endswith("add") else tiny
            times = []
            for count in (100, 1100):
                graph, _ = self._capture([call] * count)
                graph.replay()
                times.append(statistics.median(self._elapsed_us(graph) for _ in range(15)))
            return (times[1] - times[0]) / 1000
        if kind.startswith("graph_launch_host_"):
            nodes = int(kind.rsplit("_", 1)[1])
            graph, _ = self._capture([tiny] * nodes)
            graph.replay()
            times = []
            for _ in range(30):
                torch.cuda.synchronize()
                start = time.perf_counter()
                graph.replay()
                times.append((time.perf_counter() - start) * 1e6)
            torch.cuda.synchronize()
            return statistics.median(times)
        if kind == "eager_period_add":
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(5000):
                add()
            torch.cuda.synchronize()
            return (time.perf_counter() - start) * 1e6 / 5000
        if kind == "synchronize":
            return self._host_us(lambda: (tiny(), torch.cuda.synchronize()), 100)
        if kind == "item":
            return self._host_us(lambda: self.one.item(), 100)
        calls = {"add": add, "linear": lambda: F.linear(small, small), "silu": lambda: F.silu(small),
                 "layer_norm": lambda: F.layer_norm(small, (64,))}
        name = kind[len("eager_host_"):]
        if name == "sdpa_flash":
            q = torch.randn(1, 4, 64, 64, device=self.device, dtype=torch.bfloat16)
            with self._backend("sdpa_flash")():
                return self._host_us(lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True))
        if name == "index_copy":
            slots = torch.arange(64, device=self.device)
            source = small.clone()
            return self._host_us(lambda: small.index_copy_(0, slots, source))
        if name == "triton":
            if triton is None:
                raise Skip("Triton is not installed")
            out = torch.empty_like(small)
            return self._host_us(lambda: rms_norm_kernel[(64,)](small, small, out, 64, BLOCK=64, num_warps=4))
        return self._host_us(calls[name])


# ---------------------------------------------------------------------------------------------------------------------
# Sustained operation.

WARM_SHARE = 0.375  # of the time a sustained kernel runs: not counted


def idle_power(board, seconds):
    sampler, begin = Sampler(board), time.perf_counter()
    sampler.start()
    time.sleep(seconds)
    sampler.stop()
    return sampler.power(begin, begin + seconds)


def sustained_row(bench, board, name, seconds):
    """The columns SUSTAINED_RESULTS, less idle_w, of one pass over the calls of `name`."""
    cases = []
    for family, row in SUSTAINED[name]:
        if HIP and row.get("kernel") == "sdpa_cudnn":
            raise Skip("cuDNN is for NVIDIA's GPUs")
        row = bench.adapt(family, row)
        cases.append(bench.case(family, row))
    with contextlib.ExitStack() as stack:
        for case in cases:
            stack.enter_context(case.context())
        singles = [case.make() for case in cases]
        for case, buffers in zip(cases, singles):
            case.call(*buffers)
        rough = sum(min(bench._time_once(case, b) for _ in range(2)) for case, b in zip(cases, singles))
        moved = sum(case.bytes for case in cases)
        sets = max(3, min(64, -(-3 * bench.l2_bytes // max(1, moved))))
        buffers = [[case.make() for case in cases] for _ in range(sets)]

        def one_pass(index):
            for case, made in zip(cases, buffers[index % sets]):
                case.call(*made)
        # Outputs die at once and share memory: this runs for seconds, as a service does.
        passes = max(sets, min(400, round(10_000 / rough)))
        in_graph = all(case.in_graph for case in cases)
        graph, _ = bench._prepare([lambda i=i: one_pass(i) for i in range(passes)], in_graph)
        short = max(1, min(sets, round(600 / rough)))
        burst_graph, _ = bench._prepare([lambda i=i: one_pass(i) for i in range(short)], in_graph)
    graph.replay()
    torch.cuda.synchronize()
    time.sleep(0.7)
    burst_graph.replay()
    burst = statistics.median((bench._elapsed_us(burst_graph) - bench.start_us) / short for _ in range(7))

    sampler = Sampler(board)
    sampler.start()
    events = []
    begin = time.perf_counter()
    warm_event = None
    while time.perf_counter() < begin + seconds:
        graph.replay()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        events.append(event)
        if len(events) > 3:
            events[-4].synchronize()  # a few replays queued, no more
        if warm_event is None and time.perf_counter() > begin + WARM_SHARE * seconds:
            warm_event = len(events) - 1
    torch.cuda.synchronize()
    sampler.stop()
    count = len(events) - 1 - warm_event
    sustained = events[warm_event].elapsed_time(events[-1]) * 1000 / count / passes
    hot = [s for s in sampler.samples if begin + WARM_SHARE * seconds <= s[0] <= begin + seconds]
    power = sampler.power(begin + WARM_SHARE * seconds, begin + seconds)
    limits = [text for bit, text in LIMIT_BITS.items() if sum(1 for _, s in hot if s[4] & bit) * 2 > len(hot)]
    families = "+".join(dict.fromkeys(family for family, _ in SUSTAINED[name]))
    shapes = "; ".join(row_text(row) for _, row in SUSTAINED[name])
    return [families, shapes, sum(case.flops for case in cases), moved, burst, sustained, power,
            mean_of(hot, 0), mean_of(hot, 1), mean_of(hot, 2), mean_of(hot, 3), "+".join(limits) or "none"]


# ---------------------------------------------------------------------------------------------------------------------
# The run.


class Progress:
    def __init__(self, shown, estimated_seconds):
        self.shown = shown
        self.begin = self.last = time.perf_counter()
        self.estimated = estimated_seconds
        self.spent_estimate = 0.0

    def step(self, family, done, total, row_estimate):
        self.spent_estimate += row_estimate
        now = time.perf_counter()
        if self.shown and (now - self.last > 2 or done == total):
            self.last = now
            elapsed = now - self.begin
            rate = elapsed / max(self.spent_estimate, 1e-9)
            left = max(0.0, self.estimated - self.spent_estimate) * min(10.0, max(0.1, rate))
            print(f"{family:18} {done:4}/{total:<4} {elapsed:5.0f} s, about {left:.0f} s left", file=sys.stderr,
                  flush=True)


def print_plan(plan, tables, arguments):
    print(f"{'family':18} {'rows':>5} {'done':>5} {'seconds':>8}")
    total = 0.0
    for name, rows in plan.items():
        done = sum(1 for row in rows if tables[name].has(row))
        seconds = (len(rows) - done) * FAMILIES[name].seconds_per_row
        total += seconds
        print(f"{name:18} {len(rows):5} {done:5} {seconds:8.0f}")
    total += 15 if total else 0  # start, data, second timings
    print(f"expected: {total / 60:.1f} minutes on a current datacentre GPU; stops after {arguments.minutes:g} minutes "
          f"(--minutes) and goes on from there when run again")
    return total


def is_fatal(error):
    """After these the process cannot use the device any more."""
    text = str(error)
    return any(sign in text for sign in ("illegal memory access", "device-side assert", "unspecified launch failure",
                                         "misaligned address", "illegal instruction"))


class Run:
    def __init__(self, arguments, plan, tables):
        self.arguments, self.plan, self.tables = arguments, plan, tables
        self.skipped = Table(arguments.out, "skipped", ["family", "row"], ["why"])
        self.repeated = Table(arguments.out, "repeat", ["family", "row"], ["first_us", "second_us"])
        properties = torch.cuda.get_device_properties(arguments.device)
        uuid = str(getattr(properties, "uuid", "") or "")
        self.board = AmdBoard(properties) if HIP else Board(
            arguments.device, "GPU-" + uuid if uuid and not uuid.startswith("GPU-") else uuid)
        self.begin = time.perf_counter()
        self.measured = {}  # family -> rows timed in this run
        self.seconds = {}  # family -> time spent
        self.out_of_time = []

    def write_meta(self, bench, state):
        path = os.path.join(self.arguments.out, "meta.json")
        meta = {}
        if os.path.exists(path):
            with open(path) as file:
                meta = json.load(file)
        properties = bench.properties
        versions = {"driver": self.board.driver(), **({"hip": torch.version.hip} if HIP else
                    {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}),
                    "torch": torch.__version__, "triton": getattr(triton, "__version__", None),
                    "python": platform.python_version()}
        if meta.get("device") not in (None, properties.name):
            raise InputError(f"{path}: rows of {meta['device']}, and this is {properties.name}\n  choose another --out")
        if meta.get("versions") not in (None, versions):
            raise InputError(f"{path}: rows measured with {meta['versions']}\n  and this is {versions}; "
                             "choose another --out")
        meta.update({
            "format": VERSION, "device": properties.name,
            **({"architecture": bench.architecture()} if HIP else {"compute_capability": "%d.%d" % bench.capability}),
            "processors": properties.multi_processor_count, "l2_bytes": bench.l2_bytes,
            "memory_bytes": properties.total_memory, **self.board.facts(), "versions": versions,
            "host": platform.machine() + " " + platform.system(),
            "settings": {"seed": self.arguments.seed, "scale": self.arguments.scale, "rounds": self.arguments.rounds,
                         "repeats": self.arguments.repeats,
                         "sustained_seconds": self.arguments.sustained_seconds, "warm_share": WARM_SHARE,
                         "rest": REST, "flushed_l2_bytes": bench.flush_buffer.numel() * 4, "script_version": VERSION},
            "graph_start_us": round(bench.start_us, 3),
            "attention_gqa": bench.gqa,
        })
        meta.setdefault("runs", [])
        meta.setdefault("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"))
        if state:
            meta["runs"].append(state)
        temporary = path + ".tmp"
        with open(temporary, "w") as file:
            json.dump(meta, file, indent=2)
            file.write("\n")
        os.replace(temporary, path)

    def note_skipped(self, family, row, why):
        entry = {"family": family, "row": row_text(row)}
        if not self.skipped.has(entry):
            self.skipped.add(entry, " ".join(str(why).split())[:200])

    def one(self, bench, family, row):
        if family == "launch":
            return bench.launch(**row)
        if family == "host_copy":
            return bench.host_copy(**row)
        return bench.measure(bench.case(family, row))

    def attempt(self, bench, family, row, what):
        """what() or None; a row that cannot be measured is noted. Errors that end the process are raised."""
        try:
            return what()
        except Skip as error:
            self.note_skipped(family, row, error)
        except torch.cuda.OutOfMemoryError:
            self.note_skipped(family, row, "out of memory")
            bench.recover()
        except RuntimeError as error:
            self.note_skipped(family, row, error)
            if is_fatal(error):
                raise
            bench.recover()
        except Exception as error:  # Triton's compiler has its own kinds
            self.note_skipped(family, row, f"{type(error).__name__}: {error}")
            bench.recover()
        return None

    def sweep(self, bench, progress):
        todo = {}
        for family, rows in self.plan.items():
            todo[family] = []
            for row in rows:
                adapted = self.attempt(bench, family, row, lambda: bench.adapt(family, row))
                if adapted is None or self.tables[family].has(adapted):
                    continue
                entry = {"family": family, "row": row_text(adapted)}
                if self.skipped.has(entry) and not self.arguments.retry_skipped:
                    continue
                todo[family].append(adapted)
        deadline = self.begin + 60 * self.arguments.minutes
        estimate = {family: len(rows) * FAMILIES[family].seconds_per_row for family, rows in todo.items()}
        idle = None
        for index, (family, rows) in enumerate(todo.items()):
            # Each family may use its share of the time left, so that a slow one leaves some to the rest.
            names = list(todo)[index:]
            left = deadline - time.perf_counter()
            share = left * estimate[family] / max(sum(estimate[name] for name in names), 1e-9)
            # The least is for what a first row compiles.
            begin = time.perf_counter()
            family_deadline = begin + (min(left, max(share, 5.0)) if len(names) > 1 else left)
            if family == "sustained" and rows:
                idle = idle_power(self.board, 3.0)
            for count, row in enumerate(rows):
                if time.perf_counter() > family_deadline:
                    self.out_of_time.append(f"{family}: {len(rows) - count} rows")
                    break
                if family == "sustained":
                    seconds = self.arguments.sustained_seconds
                    values = self.attempt(bench, family, row,
                                          lambda: sustained_row(bench, self.board, row["name"], seconds))
                    if values:
                        self.tables[family].add(row, *["" if v is None else v for v in values + [idle]])
                else:
                    latency = self.attempt(bench, family, row, lambda: self.one(bench, family, row))
                    if latency is not None:
                        self.tables[family].add(row, latency)
                        self.measured.setdefault(family, []).append((row, latency))
                progress.step(family, count + 1, len(rows), FAMILIES[family].seconds_per_row)
            if rows:
                bench.pools.clear()
                self.seconds[family] = round(time.perf_counter() - begin, 1)

    def repeat(self, bench):
        """Times some rows again, minutes later: what a difference between two rows means."""
        for family, rows in self.measured.items():
            if family in ("launch", "host_copy"):
                continue
            for row, first in rows[::max(1, len(rows) // REPEATED_PER_FAMILY)][:REPEATED_PER_FAMILY]:
                entry = {"family": family, "row": row_text(row)}
                second = self.attempt(bench, family, row, lambda: self.one(bench, family, row))
                if second is not None and not self.repeated.has(entry):
                    self.repeated.add(entry, first, second)
            bench.pools.clear()

    def __call__(self):
        # Before the first allocation.
        idle_before = idle_power(self.board, 1.0)
        bench = Bench(self.arguments, self.board)
        self.write_meta(bench, None)
        estimated = sum(len(rows) * FAMILIES[family].seconds_per_row for family, rows in self.plan.items())
        progress = Progress(self.arguments.progress or sys.stderr.isatty(), estimated)
        stopped = None
        try:
            self.sweep(bench, progress)
            self.repeat(bench)
        except KeyboardInterrupt:
            stopped = "interrupted"
        except RuntimeError as error:
            stopped = "device error: " + " ".join(str(error).split())[:200]
        seconds = time.perf_counter() - self.begin
        state = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                 "seconds": round(seconds, 1), "rows": {name: len(rows) for name, rows in self.measured.items()},
                 "idle_before_w": idle_before and round(idle_before, 1),
                 "family_seconds": self.seconds}
        if stopped:
            state["stopped"] = stopped
        self.write_meta(bench, state)
        self.summary(seconds, stopped)
        return 1 if stopped else 0

    def summary(self, seconds, stopped):
        rows = sum(len(table.done) for table in self.tables.values())
        print(f"{rows} rows in {self.arguments.out}, {len(self.skipped.done)} skipped (skipped.csv), "
              f"{seconds / 60:.1f} minutes")
        changes = [abs(float(b) / float(a) - 1) for a, b in self.repeated.done.values()]
        if changes:
            print(f"timed again: median change {100 * statistics.median(changes):.1f} %, "
                  f"largest {100 * max(changes):.1f} % of {len(changes)} rows")
        if self.out_of_time:
            print("out of time, run again to go on: " + ", ".join(self.out_of_time))
        if stopped:
            print(f"{stopped}: the finished rows are in place; run again to go on", file=sys.stderr)


def parse_arguments(texts):
    parser = argparse.ArgumentParser(
        description="Measures GPU kernels for foretoken: prints its plan, then writes one CSV per family.")
    parser.add_argument("--out", default="measured", metavar="DIR", help="where the CSV files go (default: measured)")
    parser.add_argument("--plan", action="store_true", help="print the plan and the expected minutes, measure nothing")
    parser.add_argument("--families", default="all", metavar="LIST", help="some of: " + ", ".join(FAMILIES))
    parser.add_argument("--minutes", type=float, default=6.0, help="stop after this long (default: 6)")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of points (default: 1)")
    parser.add_argument("--probe", type=int, default=0, metavar="N",
                        help="only N rows of each kernel and number format (30: about a minute), nothing sustained")
    parser.add_argument("--seed", type=int, default=1, help="of shapes and data (default: 1)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds with other buffers per row (default: 3)")
    parser.add_argument("--repeats", type=int, default=3, help="timings per round (default: 3)")
    parser.add_argument("--sustained-seconds", type=float, default=4.0, metavar="S",
                        help="how long each sustained kernel runs (default: 4); the first 3/8 are warm-up")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="number of the GPU (default: 0)")
    parser.add_argument("--progress", action="store_true", help="progress lines even when stderr is no terminal")
    parser.add_argument("--retry-skipped", action="store_true", help="try rows of skipped.csv again")
    arguments = parser.parse_args(texts)
    for name, least, most in [("minutes", 0.1, 600), ("scale", 0.01, 100), ("repeats", 1, 1000), ("rounds", 1, 1000),
                              ("device", 0, 1023), ("probe", 0, 10000), ("sustained-seconds", 0.4, 60)]:
        value = getattr(arguments, name.replace("-", "_"))
        if not least <= value <= most:
            raise InputError(f"--{name} {value}\n  expected {least} to {most}")
    names = list(FAMILIES) if arguments.families == "all" else arguments.families.split(",")
    for name in names:
        if name not in FAMILIES:
            near = difflib.get_close_matches(name, FAMILIES, 1)
            raise InputError(f"--families {name}\n  expected some of {', '.join(FAMILIES)}"
                             + (f"; did you mean {near[0]}?" if near else ""))
    arguments.families = [name for name in FAMILIES if name in names]
    return arguments


def main(texts):
    arguments = parse_arguments(texts)
    plan = make_plan(arguments.seed, arguments.scale, arguments.families, arguments.probe)
    tables = {name: Table(arguments.out, name, FAMILIES[name].columns,
                          SUSTAINED_RESULTS if name == "sustained" else ["latency_us"]) for name in plan}
    print_plan(plan, tables, arguments)
    if arguments.plan:
        return 0
    if torch is None:
        raise InputError("PyTorch is not installed for this Python\n"
                         "  expected PyTorch with CUDA or ROCm; --plan works without")
    if not torch.cuda.is_available():
        raise InputError("PyTorch sees no GPU\n"
                         "  expected an NVIDIA GPU and a CUDA build of PyTorch, or an AMD GPU and a ROCm build")
    if arguments.device >= torch.cuda.device_count():
        raise InputError(f"--device {arguments.device}\n  expected 0 to {torch.cuda.device_count() - 1}")
    os.makedirs(arguments.out, exist_ok=True)
    sys.stdout.flush()
    return Run(arguments, plan, tables)()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        print(f"profile_cuda: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
