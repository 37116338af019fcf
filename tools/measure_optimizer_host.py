"""Times what the host needs to launch AdamW and the clipping of gradients, for so many tensors on one GPU.

    python3 tools/measure_optimizer_host.py --out h200_sxm_optimizer_host.csv

`*_host_ms` is the time until the call returns, `*_ms` until the GPU is done; each is a median, and begins with an idle GPU.
"""
import argparse
import csv
import statistics
import time

import torch

COUNTS = ((20, 4096), (50, 4096), (150, 4096), (300, 4096), (600, 4096), (150, 1 << 20), (150, 8 << 20), (300, 4 << 20))
WARM_UP, CALLS = 5, 20


def median_ms(call, prepare, waits):
    times = []
    for _ in range(WARM_UP + CALLS):
        prepare()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if waits:
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    torch.cuda.synchronize()
    return round(statistics.median(times[WARM_UP:]), 3)


def measured(dtype, kind, tensors, elements):
    parameters = [torch.nn.Parameter(torch.zeros(elements, device="cuda", dtype=dtype)) for _ in range(tensors)]
    gradients = [torch.ones_like(parameter) for parameter in parameters]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, **{kind: True})

    def give_gradients():
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient

    def clip():
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)

    give_gradients()
    optimizer.step()
    return {
        "dtype": str(dtype).removeprefix("torch."),
        "adamw": kind,
        "tensors": tensors,
        "elements": elements,
        "step_host_ms": median_ms(optimizer.step, give_gradients, False),
        "step_ms": median_ms(optimizer.step, give_gradients, True),
        "clip_host_ms": median_ms(clip, give_gradients, False),
        "clip_ms": median_ms(clip, give_gradients, True),
        "zero_host_ms": median_ms(lambda: optimizer.zero_grad(set_to_none=True), give_gradients, False),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    out = parser.parse_args().out
    rows = [
        measured(dtype, kind, tensors, elements)
        for dtype in (torch.float32, torch.bfloat16)
        for kind in ("fused", "foreach")
        for tensors, elements in COUNTS
    ]
    with open(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
