"""Times one Triton GEMM under many schedules (tile sizes, pipeline stages, warps, order of tiles) on one GPU.

    python3 tools/measure_schedules.py --device-name h200_sxm --out gemm_schedules.csv

A row is one schedule of one product in bf16; schedules that do not compile or do not fit are left out.
"""
import argparse
import csv
import itertools

import torch
import triton
import triton.language as tl

SHAPES = [(16, 4096, 4096), (64, 28672, 4096), (128, 4096, 14336), (256, 6144, 4096), (512, 8192, 8192), (1024, 1024, 1024),
          (1024, 4096, 4096), (2048, 2048, 8192), (3008, 3072, 3072), (4096, 4096, 4096), (4096, 14336, 4096), (8192, 8192, 8192)]
TILES = [(16, 64, 128), (16, 128, 128), (32, 64, 128), (32, 128, 64), (64, 64, 64), (64, 128, 64), (64, 256, 64), (128, 64, 64),
         (128, 128, 32), (128, 128, 64), (128, 256, 64), (256, 128, 64), (256, 64, 64)]
STAGES, WARPS, GROUPS = (2, 3, 4), (4, 8), (1, 8)


@triton.jit
def product(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr, group: tl.constexpr):
    tile = tl.program_id(0)
    rows, columns = tl.cdiv(m, bm), tl.cdiv(n, bn)
    in_group = group * columns
    first = tile // in_group * group
    height = tl.minimum(rows - first, group)
    row, column = first + tile % in_group % height, tile % in_group // height
    at_m, at_n, at_k = row * bm + tl.arange(0, bm), column * bn + tl.arange(0, bn), tl.arange(0, bk)
    from_a = a + (at_m % m)[:, None] * k + at_k[None, :]
    from_b = b + at_k[:, None] + (at_n % n)[None, :] * k
    sums = tl.zeros((bm, bn), dtype=tl.float32)
    for _ in range(0, k, bk):
        sums = tl.dot(tl.load(from_a), tl.load(from_b), sums)
        from_a += bk
        from_b += bk
    tl.store(c + at_m[:, None] * n + at_n[None, :], sums.to(tl.bfloat16), mask=(at_m[:, None] < m) & (at_n[None, :] < n))


def milliseconds(call, flush):
    call()
    torch.cuda.synchronize()
    times = []
    for _ in range(7):
        flush.zero_()
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[3]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device-name", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    with open(options.out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["device", "m", "n", "k", "bm", "bn", "bk", "stages", "warps", "group", "us", "cublas_us"])
        for m, n, k in SHAPES:
            a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
            c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            best = milliseconds(lambda: torch.matmul(a, b.t(), out=c), flush) * 1000
            for (bm, bn, bk), stages, warps, group in itertools.product(TILES, STAGES, WARPS, GROUPS):
                grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
                try:
                    us = milliseconds(lambda: product[grid](a, b, c, m, n, k, bm, bn, bk, group, num_stages=stages, num_warps=warps), flush) * 1000
                except Exception as problem:
                    print("left out", bm, bn, bk, stages, warps, repr(problem)[:80], flush=True) if (m, group) == (16, 1) else None
                    continue
                writer.writerow([options.device_name, m, n, k, bm, bn, bk, stages, warps, group, f"{us:.2f}", f"{best:.2f}"])
            file.flush()
            print(m, n, k, f"{best:.1f}", flush=True)


main()
