"""Times sparse kernels of cuSPARSE through PyTorch: SpMM (CSR x dense) and SDDMM (dense x dense at the places of a CSR).

    python3 tools/measure_sparse.py --out sparse.csv

Graphs: uniform (every edge anywhere), power (degrees and popularity by a power law), band (neighbors are near). Each row is the
median of CUDA-event times, cold (caches flushed before each run) and warm (repeated).
"""

import argparse
import csv
import time

import torch


def make_graph(kind, rows, degree, generator):
    """CSR of about rows x degree edges, without duplicates in a row."""
    edges = rows * degree
    device = generator.device
    if kind == "uniform":
        source = torch.randint(rows, (edges,), generator=generator, device=device)
        target = torch.randint(rows, (edges,), generator=generator, device=device)
    elif kind == "band":
        source = torch.arange(rows, device=device).repeat_interleave(degree)
        offset = torch.randint(-4 * degree, 4 * degree + 1, (edges,), generator=generator, device=device)
        target = (source + offset).clamp(0, rows - 1)
    else:
        # Density x^-0.6 on (0, 1]: few nodes have most edges, as in web and social graphs.
        draw = lambda: (torch.rand(edges, generator=generator, device=device) ** 2.5 * rows).long().clamp(max=rows - 1)
        shuffle = torch.randperm(rows, generator=generator, device=device)
        source, target = shuffle[draw()], shuffle[draw()]
    keys = torch.unique(source * rows + target)
    source, target = keys // rows, keys % rows
    counts = torch.bincount(source, minlength=rows)
    crow = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    crow[1:] = counts.cumsum(0)
    return crow.int(), target.int(), counts


def timed(work, flush, repeats):
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    for begin, end in events:
        if flush is not None:
            flush.zero_()
        begin.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return sorted(1e3 * begin.elapsed_time(end) for begin, end in events)[repeats // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=480)
    arguments = parser.parse_args()
    generator = torch.Generator(device="cuda").manual_seed(0)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    began = time.time()
    columns = ["op", "dtype", "graph", "rows", "nnz", "max_row", "features", "cold_us", "warm_us"]
    with open(arguments.out, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        for rows in (4096, 16384, 65536, 262144, 1048576, 2097152):
            for degree in (2, 8, 16, 32, 64):
                if rows * degree > 70_000_000:
                    continue
                for kind in ("uniform", "power", "band"):
                    if time.time() - began > arguments.seconds:
                        return
                    crow, column, counts = make_graph(kind, rows, degree, generator)
                    nnz = int(column.numel())
                    for features in (16, 32, 64, 128, 256, 512):
                        if rows * features > 600_000_000:
                            continue
                        for dtype in (torch.float32, torch.bfloat16):
                            name = {torch.float32: "fp32", torch.bfloat16: "bf16"}[dtype]
                            values = torch.ones(nnz, dtype=dtype, device="cuda")
                            graph = torch.sparse_csr_tensor(crow, column, values, (rows, rows))
                            dense = torch.randn(rows, features, device="cuda", dtype=dtype, generator=generator)
                            works = {"spmm": lambda: torch.mm(graph, dense)}
                            if dtype == torch.float32:
                                other = torch.randn(features, rows, device="cuda", dtype=dtype, generator=generator)
                                works["sddmm"] = lambda: torch.sparse.sampled_addmm(graph, dense, other, beta=0)
                            for op, work in works.items():
                                try:
                                    work()
                                    torch.cuda.synchronize()
                                    first = timed(work, None, 3)
                                    repeats = 5 if first > 5e3 else 11
                                    table.writerow([op, name, kind, rows, nnz, int(counts.max()), features,
                                                    f"{timed(work, flush, repeats):.2f}", f"{timed(work, None, repeats):.2f}"])
                                except RuntimeError as error:
                                    print(op, name, kind, rows, features, str(error).splitlines()[0], flush=True)
                        file.flush()


if __name__ == "__main__":
    main()
