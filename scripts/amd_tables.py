#!/usr/bin/env python3
"""Tuned kernel times of ROCm/aiter as folders that `foretoken fit derates` reads: <out>/<device>/{gemm,moe}.csv.

usage: scripts/amd_tables.py FOLDER OUT    (FOLDER holds gemm.csv.gz and moe.csv.gz)

Only formats that both vendors measure: bf16, fp8 (a scale for each row) and fp8_block. Each row is the fastest kernel that
AMD's tuner found. Devices that the library does not describe are left out by the fit.
"""
import csv
import gzip
import pathlib
import sys


def rows_of(path):
    with gzip.open(path, "rt", newline="") as file:
        yield from csv.DictReader(file)


def write(folder, family, columns, rows):
    by_device = {}
    for device, row in rows:
        by_device.setdefault(device, []).append(row)
    for device, own in sorted(by_device.items()):
        path = folder / device / f"{family}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(own)


def gemm_rows(path):
    for row in rows_of(path):
        if row["dtype"] in ("bf16", "fp8", "fp8_block"):
            yield row["device"], [row["dtype"], row["m"], row["n"], row["k"], row["latency_us"]]


def moe_rows(path):
    formats = {("bf16", "bf16", "No"): "bf16", ("fp8", "fp8", "per_Token"): "fp8", ("fp8", "fp8", "per_1x128"): "fp8_block"}
    for row in rows_of(path):
        dtype = formats.get((row["dtype_a"], row["dtype_w"], row["scales"]))
        if dtype and row["gated"] == "True":
            yield row["device"], [dtype, row["tokens"], row["hidden"], row["inter"], row["topk"], row["experts"], 1, 1,
                                  "balanced", row["latency_us"]]


def main():
    source, out = map(pathlib.Path, sys.argv[1:3])
    write(out, "gemm", ["dtype", "m", "n", "k", "latency_us"], gemm_rows(source / "gemm.csv.gz"))
    write(out, "moe", ["dtype", "tokens", "hidden", "inter", "topk", "experts", "tp", "ep", "routing", "latency_us"],
          moe_rows(source / "moe.csv.gz"))


if __name__ == "__main__":
    main()
