#!/usr/bin/env python3
"""Times DeepGEMM's grouped multiplies on this machine's GPU, as a rank with expert parallelism runs them.

Writes two tables into a folder: deepgemm.csv, one multiply a row, and moe.csv, the expert layers they add up to (both
multiplies and the activation between them) in the columns of `foretoken kernel moe`. Needs torch, triton and deep_gemm
(github.com/deepseek-ai/DeepGEMM); kernels are compiled on first use, which takes an hour of one core.

    python3 tools/measure_experts.py data/measured/h200_sxm
"""
import csv
import math
import os
import statistics
import sys

import deep_gemm
import torch
import triton
import triton.language as tl
from deep_gemm.utils.layout import get_mn_major_tma_aligned_tensor

MODELS = [(7168, 2048, 256), (4096, 1536, 128), (2048, 768, 128)]  # width, width of an expert, experts
TOP_K = 8
GROUPS = [2, 4, 8, 16, 32]
TOKENS = [1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]  # of one expert
MOST_MASKED = 1024  # rows that the masked layout keeps for each expert
PROCESSORS = torch.cuda.get_device_properties(0).multi_processor_count
BESIDE_DISPATCH = PROCESSORS - 24  # what DeepEP's normal kernels leave


def cases():
    for hidden, inter, _ in MODELS:
        for n, k in ((2 * inter, hidden), (hidden, inter)):
            for dtype in ("fp8_block", "bf16"):
                for groups in GROUPS:
                    for tokens in TOKENS:
                        for layout in ("contiguous", "masked"):
                            fits = 16 <= tokens and groups * tokens <= 65536 if layout == "contiguous" else tokens <= 768
                            if not fits:
                                continue
                            case = dict(kernel=f"deepgemm_{layout}", dtype=dtype, groups=groups, tokens=tokens, n=n, k=k)
                            yield dict(case, loads="even", processors=PROCESSORS)
                            if dtype != "fp8_block":
                                continue
                            if groups in (4, 16) and 32 <= tokens <= 512:
                                yield dict(case, loads="uneven", processors=PROCESSORS)
                            if groups in (4, 8) and hidden == 7168 and (tokens >= 256) == (layout == "contiguous"):
                                yield dict(case, loads="even", processors=BESIDE_DISPATCH)


def loads_of(case):
    if case["loads"] == "even":
        return [case["tokens"]] * case["groups"]
    shares = [(i + 1) ** -0.8 for i in range(case["groups"])]
    scale = case["tokens"] * case["groups"] / sum(shares)
    return [min(MOST_MASKED, max(1, round(scale * share))) for share in shares]


class Weights:
    """64 experts of one shape at a time; calls take turns among them so that weights are cold."""

    def __init__(self):
        self.key = None

    def of(self, case):
        key = (case["dtype"], case["n"], case["k"])
        if key != self.key:
            self.values = self.scales = None
            torch.cuda.empty_cache()
            n, k, fp8 = case["n"], case["k"], case["dtype"] == "fp8_block"
            self.values = torch.empty(64, n, k, device="cuda", dtype=torch.float8_e4m3fn if fp8 else torch.bfloat16)
            for one in self.values:
                one.copy_(torch.randn(n, k, device="cuda", dtype=torch.bfloat16) * (60 if fp8 else 1))
            self.scales = torch.rand(64, n // 128, k // 128, device="cuda") * 0.01 + 0.001 if fp8 else None
            self.key = key
        return self.values, self.scales


def call_of(case, weights):
    values, scales = weights.of(case)
    groups, n, k, fp8 = case["groups"], case["n"], case["k"], case["dtype"] == "fp8_block"
    deep_gemm.set_num_sms(case["processors"])
    loads = loads_of(case)

    def activations(*shape):
        x = torch.randn(*shape, k, device="cuda", dtype=torch.bfloat16)
        if not fp8:
            return x
        scale = torch.rand(*shape, k // 128, device="cuda") * 0.01 + 0.001
        return (x * 60).to(torch.float8_e4m3fn), get_mn_major_tma_aligned_tensor(scale)

    more = dict(disable_ue8m0_cast=True) if fp8 else {}
    if case["kernel"] == "deepgemm_contiguous":
        step = deep_gemm.get_theoretical_mk_alignment_for_contiguous_layout()
        deep_gemm.set_mk_alignment_for_contiguous_layout(step)
        padded = [-(-load // step) * step for load in loads]
        a, d = activations(sum(padded)), torch.empty(sum(padded), n, device="cuda", dtype=torch.bfloat16)
        owners = torch.full((sum(padded),), -1, device="cuda", dtype=torch.int32)
        at = 0
        for expert, (load, rows) in enumerate(zip(loads, padded)):
            owners[at:at + load] = expert
            at += rows
        multiply = deep_gemm.m_grouped_fp8_gemm_nt_contiguous if fp8 else deep_gemm.m_grouped_bf16_gemm_nt_contiguous
        arguments = (d, owners)
    else:
        a, d = activations(groups, MOST_MASKED), torch.empty(groups, MOST_MASKED, n, device="cuda", dtype=torch.bfloat16)
        multiply = deep_gemm.m_grouped_fp8_gemm_nt_masked if fp8 else deep_gemm.m_grouped_bf16_gemm_nt_masked
        arguments = (d, torch.tensor(loads, device="cuda", dtype=torch.int32), max(1, round(sum(loads) / groups)))
    sets = max(1, min(64 // groups, math.ceil(300e6 / (groups * n * k * values.element_size()))))

    def run(turn):
        part = slice(turn * groups, (turn + 1) * groups)
        multiply(a, (values[part], scales[part]) if fp8 else values[part], *arguments, **more)

    return run, sets


def microseconds(run, sets):
    for turn in range(sets):
        run(turn)
    torch.cuda.synchronize()
    graph, calls = torch.cuda.CUDAGraph(), max(sets, 8)
    with torch.cuda.graph(graph):
        for turn in range(calls):
            run(turn % sets)
    times = []
    for _ in range(6):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / calls)
    return statistics.median(times[1:])


@triton.jit
def swiglu_cast(x, y, scales, width: tl.constexpr, block: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = part * block + tl.arange(0, block)
    gate = tl.load(x + row * 2 * width + at).to(tl.float32)
    value = gate / (1 + tl.exp(-gate)) * tl.load(x + row * 2 * width + width + at).to(tl.float32)
    value = tl.reshape(value, (block // 128, 128))
    scale = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-4) / 448.0
    tl.store(y + row * width + at, tl.reshape(value / scale[:, None], (block,)).to(tl.float8e4nv))
    tl.store(scales + row * (width // 128) + part * (block // 128) + tl.arange(0, block // 128), scale)


def activation_times():
    """(width, rows) -> us of the stage between the multiplies: SwiGLU and the cast to fp8 with a scale per 128."""
    times = {}
    for _, width, _ in MODELS:
        block = {2048: 1024, 1536: 512, 768: 256}[width]
        for rows in (64, 512, 2048, 8192, 32768):
            x = torch.randn(rows, 2 * width, device="cuda", dtype=torch.bfloat16)
            y = torch.empty(rows, width, device="cuda", dtype=torch.float8_e4m3fn)
            scales = torch.empty(rows, width // 128, device="cuda")
            times[width, rows] = microseconds(lambda _: swiglu_cast[(rows, width // block)](x, y, scales, width, block), 1)
    return times


def activation_us(times, width, rows):
    known = sorted((r, us) for (w, r), us in times.items() if w == width)
    if rows >= known[-1][0]:
        return known[-1][1] * rows / known[-1][0]
    for (below, low), (above, high) in zip(known, known[1:]):
        if rows <= above:
            share = math.log(max(rows, below) / below) / math.log(above / below)
            return low * (high / low) ** share
    return known[0][1]


def expert_layers(multiplies, activations):
    found = {tuple(row[name] for name in ("kernel", "dtype", "groups", "tokens", "n", "k")): row["latency_us"]
             for row in multiplies if row["loads"] == "even" and row["processors"] == PROCESSORS}
    for hidden, inter, experts in MODELS:
        for (kernel, dtype, groups, tokens, n, k), first in found.items():
            second = found.get((kernel, dtype, groups, tokens, hidden, inter))
            if (n, k) != (2 * inter, hidden) or second is None:
                continue
            rows = groups * (-(-tokens // 128) * 128 if kernel == "deepgemm_contiguous" else tokens)
            # Without the cast six bytes move for five.
            between = activation_us(activations, inter, rows) * (1.2 if dtype == "bf16" else 1)
            ranks = experts // groups
            yield [kernel, dtype, groups * tokens * ranks // TOP_K, hidden, inter, TOP_K, experts, 1, ranks, "balanced",
                   f"{first + between + second:.5g}"]


def main():
    folder, weights, rows = sys.argv[1], Weights(), []
    for case in cases():
        rows.append(dict(case, latency_us=microseconds(*call_of(case, weights))))
    with open(os.path.join(folder, "deepgemm.csv"), "w") as file:
        table = csv.writer(file, lineterminator="\n")
        names = ["kernel", "dtype", "groups", "tokens", "loads", "n", "k", "processors"]
        table.writerow(names + ["latency_us"])
        for row in rows:
            table.writerow([row[name] for name in names] + [f"{row['latency_us']:.5g}"])
    with open(os.path.join(folder, "moe.csv"), "w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow("kernel,dtype,tokens,hidden,inter,topk,experts,tp,ep,routing,latency_us".split(","))
        table.writerows(expert_layers(rows, activation_times()))


main()
