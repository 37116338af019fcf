"""Times sparse kernels of cuSPARSE through PyTorch: SpMM (CSR x dense) and SDDMM (dense x dense at the places of a CSR).

    python3 tools/measure_sparse.py --out measured/h200_sxm

Writes spmm.csv and sddmm.csv, which `foretoken fit kernels` and `foretoken validate kernels` read. Graphs: uniform (every
edge anywhere), power (degrees and popularity by a power law), band (neighbors are near). `--sweep random` draws sizes and
numbers of features anew for each graph, which is what a fit needs; `--sweep grid` takes powers of two. latency_us is the
median of CUDA-event times with caches flushed before each run, warm_us that of runs without pause.
"""

import argparse
import csv
import math
import os
import random
import time

import torch


def make_graph(kind, rows, columns, degree, generator):
    """CSR of about rows x degree edges, without duplicates in a row, and the edges of each row."""
    edges = int(rows * degree)
    device = generator.device
    if kind == "uniform":
        source = torch.randint(rows, (edges,), generator=generator, device=device)
        target = torch.randint(columns, (edges,), generator=generator, device=device)
    elif kind == "band":
        source = torch.arange(edges, device=device) * rows // edges
        width = max(1, int(4 * degree))
        offset = torch.randint(-width, width + 1, (edges,), generator=generator, device=device)
        target = (source + offset).clamp(0, columns - 1)
    else:
        # Density x^-0.6 on (0, 1]: few nodes have most edges, as in web and social graphs.
        def draw(count):
            places = (torch.rand(edges, generator=generator, device=device) ** 2.5 * count).long().clamp(max=count - 1)
            return torch.randperm(count, generator=generator, device=device)[places]

        source, target = draw(rows), draw(columns)
    keys = torch.unique(source * columns + target)
    source, target = keys // columns, keys % columns
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


def grid():
    """(kind, rows, columns, degree, numbers of features)"""
    for rows in (4096, 16384, 65536, 262144, 1048576, 2097152):
        for degree in (2, 8, 16, 32, 64):
            if rows * degree <= 70_000_000:
                for kind in ("uniform", "power", "band"):
                    yield kind, rows, rows, degree, [f for f in (16, 32, 64, 128, 256, 512) if rows * f <= 600_000_000]


def random_graphs(seed):
    draw = random.Random(seed)

    def log_uniform(low, high):
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    index = 0
    while True:
        rows, degree = int(log_uniform(1500, 2e6)), log_uniform(1.5, 80)
        if rows * degree > 5e7:
            continue
        kind = ("uniform", "power", "band")[index % 3]
        index += 1
        columns = rows if kind == "band" else int(rows * draw.choice([1, 1, 1, 0.25, 4]))
        # Half of them multiples of 8: rows that start on 16 bytes run other kernels.
        features = [max(8, int(log_uniform(4, 768)) // 8 * 8) if i % 2 == 0 else int(log_uniform(4, 768)) for i in range(4)]
        yield kind, rows, columns, degree, features


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder for spmm.csv and sddmm.csv")
    parser.add_argument("--sweep", choices=("random", "grid"), default="random")
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = torch.Generator(device="cuda").manual_seed(arguments.seed)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    began = time.time()
    os.makedirs(arguments.out, exist_ok=True)
    columns_of_table = ["dtype", "graph", "rows", "columns", "nnz", "max_row", "features", "latency_us", "warm_us"]
    files = {op: open(os.path.join(arguments.out, op + ".csv"), "w", newline="") for op in ("spmm", "sddmm")}
    tables = {op: csv.writer(file) for op, file in files.items()}
    for table in tables.values():
        table.writerow(columns_of_table)
    for kind, rows, columns, degree, numbers in grid() if arguments.sweep == "grid" else random_graphs(arguments.seed):
        if time.time() - began > arguments.seconds:
            return
        crow, column, counts = make_graph(kind, rows, columns, degree, generator)
        nnz = int(column.numel())
        for features in numbers:
            for dtype, name in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
                values = torch.ones(nnz, dtype=dtype, device="cuda")
                graph = torch.sparse_csr_tensor(crow, column, values, (rows, columns))
                dense = torch.randn(columns, features, device="cuda", dtype=dtype, generator=generator)
                works = {"spmm": lambda: torch.mm(graph, dense)}
                if dtype == torch.float32 and (arguments.sweep == "grid" or nnz * features < 4e9):
                    left = torch.randn(rows, features, device="cuda", generator=generator)
                    right = torch.randn(features, columns, device="cuda", generator=generator)
                    works["sddmm"] = lambda: torch.sparse.sampled_addmm(graph, left, right, beta=0)
                for op, work in works.items():
                    try:
                        work()
                        torch.cuda.synchronize()
                        repeats = 5 if timed(work, None, 3) > 5e3 else 11
                        times = [f"{timed(work, caches, repeats):.2f}" for caches in (flush, None)]
                        tables[op].writerow([name, kind, rows, columns, nnz, int(counts.max()), features, *times])
                    except RuntimeError as error:
                        print(op, name, kind, rows, features, str(error).splitlines()[0], flush=True)
        for file in files.values():
            file.flush()


if __name__ == "__main__":
    main()
