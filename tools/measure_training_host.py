"""Times what the host needs to launch training steps of tiny layers on one GPU.

    python3 tools/measure_training_host.py --out host.csv

Tiny layers of measure_finetuning.py and measure_training.py: the GPU always waits. Per layer: the difference of 24 and
8 layers. Each run of the program is one process; hosts differ between processes.
"""
import argparse
import csv
import statistics
import time

import torch
from torch import nn

import measure_finetuning as steps

FEW, MANY, LENGTH = 8, 24, 64
ADAPTED = {"lora_rank": 16, "lora_on": "all"}
POINTS = [
    ("Llama", {}),
    ("Llama", ADAPTED),
    ("Llama", {**ADAPTED, "checkpointing": 1}),
    ("Llama", {"precision": "bf16-mixed"}),
    ("Llama", {"attention": "eager"}),
    ("Llama", {"stack": "compile"}),
    ("decoder", {}),
    ("decoder", {"precision": "bf16-mixed"}),
    ("decoder", {"stack": "compile"}),
    ("decoder", {"stack": "compile", "precision": "bf16-mixed"}),
]


def step_ms(code, options, layers):
    name = f"{code}{layers}"
    steps.SIZES[name] = ("Llama", layers, 4, 2, 256, 64, 512, 512, True)
    steps.plain.SIZES[name] = (layers, 4, 2, 256, 512, 512, True)
    is_decoder = code == "decoder"
    one = steps.point(name, 1, LENGTH, **{"code": "decoder" if is_decoder else "transformers", **options})
    torch._dynamo.reset()
    model, loss_of = (steps.plain_model if is_decoder else steps.transformers_model)(one)
    run = torch.compile(model) if one["stack"] == "compile" else model
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    tokens = torch.randint(0, 512, (1, LENGTH), device="cuda")
    times = []
    for _ in range(45):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16, enabled=one["precision"] == "bf16-mixed"):
            loss = loss_of(run, tokens)
        loss.backward()
        if not is_decoder:
            nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[5:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    with open(arguments.out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["code", "options", "few_ms", "many_ms", "layer_ms"])
        for code, options in POINTS:
            few, many = step_ms(code, options, FEW), step_ms(code, options, MANY)
            said = " ".join(f"{key}={value}" for key, value in options.items())
            writer.writerow([code, said, round(few, 3), round(many, 3), round((many - few) / (MANY - FEW), 4)])
            file.flush()


if __name__ == "__main__":
    main()
