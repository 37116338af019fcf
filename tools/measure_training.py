"""Times whole training steps of decoders on one GPU, eager and compiled: forward, loss, backward and a fused AdamW.

    python3 tools/measure_training.py --device-name h200_sxm --out training_steps.csv

Weights are fp32 and multiplies run in bf16 (autocast), as nanoGPT trains, or all of it is bf16, as torchtitan's shards are.
Attention is PyTorch's fused one. Rows are those of `foretoken validate training`: the median of the timed steps
and the peak of allocated memory.
"""
import argparse
import csv
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

from training_rows import training_row

# layers, heads, KV heads, hidden, inner, vocabulary, gated
SIZES = {
    "openai-community/gpt2": (12, 12, 12, 768, 3072, 50304, False),
    "openai-community/gpt2-medium": (24, 16, 16, 1024, 4096, 50304, False),
    "openai-community/gpt2-large": (36, 20, 20, 1280, 5120, 50304, False),
    "openai-community/gpt2-xl": (48, 25, 25, 1600, 6400, 50304, False),
    "meta-llama/Llama-3.2-1B": (16, 32, 8, 2048, 8192, 128256, True),
    "meta-llama/Llama-3.2-3B": (28, 24, 8, 3072, 8192, 128256, True),
}
# model, batch, sequence length
POINTS = [
    ("openai-community/gpt2", 8, 1024),
    ("openai-community/gpt2", 32, 1024),
    ("openai-community/gpt2-medium", 16, 1024),
    ("openai-community/gpt2-large", 8, 1024),
    ("openai-community/gpt2-xl", 4, 1024),
    ("openai-community/gpt2-xl", 16, 1024),
    ("meta-llama/Llama-3.2-1B", 1, 4096),
    ("meta-llama/Llama-3.2-1B", 4, 4096),
    ("meta-llama/Llama-3.2-1B", 1, 16384),
    ("meta-llama/Llama-3.2-3B", 1, 4096),
    ("meta-llama/Llama-3.2-3B", 2, 8192),
]


class Layer(nn.Module):
    def __init__(self, heads, kv_heads, hidden, inner, gated):
        super().__init__()
        self.heads, self.kv_heads, self.gated = heads, kv_heads, gated
        self.size = hidden // heads
        make_norm = nn.RMSNorm if gated else nn.LayerNorm
        self.norm1, self.norm2 = make_norm(hidden), make_norm(hidden)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * self.size, bias=not gated)
        self.out = nn.Linear(hidden, hidden, bias=not gated)
        self.up = nn.Linear(hidden, (2 if gated else 1) * inner, bias=not gated)
        self.down = nn.Linear(inner, hidden, bias=not gated)

    def forward(self, x, rotation):
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, -1, self.size)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), dim=2)
        if self.gated:
            q, k = rotated(q, rotation), rotated(k, rotation)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                           enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
        inner = self.up(self.norm2(x))
        if self.gated:
            gate, inner = inner.chunk(2, dim=-1)
            inner = F.silu(gate) * inner
        else:
            inner = F.gelu(inner)
        return x + self.down(inner)


def rotated(x, rotation):
    cos, sin = rotation
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


class Decoder(nn.Module):
    def __init__(self, layers, heads, kv_heads, hidden, inner, vocabulary, gated, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.places = None if gated else nn.Embedding(length, hidden)
        self.layers = nn.ModuleList(Layer(heads, kv_heads, hidden, inner, gated) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden) if gated else nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        angles = torch.outer(torch.arange(length).float(), 1e4 ** -torch.linspace(0, 1, hidden // heads // 2))
        self.register_buffer("cos", angles.cos()[None, :, None, :])
        self.register_buffer("sin", angles.sin()[None, :, None, :])

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.places is not None:
            x = x + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, (self.cos, self.sin))
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def measure(name, batch, length, compiled, autocast, steps):
    torch.manual_seed(0)
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    model = Decoder(*SIZES[name], length).cuda()
    if not autocast:
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    run = torch.compile(model) if compiled else model
    data = torch.randint(0, SIZES[name][5], (batch, length + 1), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = run(data[:, :-1], data[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    middle = statistics.median(times)
    return {
        "model": name,
        "stack": "compile" if compiled else "eager",
        "precision": "bf16-mixed" if autocast else "bf16",
        "batch": batch,
        "input_len": length,
        "median_ms": round(middle, 3),
        "fastest_ms": round(min(times), 3),
        "tokens_per_s": round(batch * length / middle * 1e3),
        "peak_allocated_gb": round(torch.cuda.max_memory_allocated() / 1e9, 3),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device-name", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--models", default="", help="comma-separated; else all")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    with open(arguments.out, "w", newline="") as file:
        writer, rows = None, 0
        for name, batch, length in POINTS:
            if arguments.models and name not in arguments.models.split(","):
                continue
            for autocast in (True, False):
                for compiled in (False, True):
                    try:
                        row = measure(name, batch, length, compiled, autocast, arguments.steps)
                    except torch.OutOfMemoryError:
                        print(name, batch, length, "does not fit")
                        continue
                    rows += 1
                    row = training_row(rows, {"device": arguments.device_name, **row})
                    if writer is None:
                        writer = csv.DictWriter(file, row)
                        writer.writeheader()
                    writer.writerow(row)
                    file.flush()
                    print(row, flush=True)
    print(torch.__version__, torch.cuda.get_device_name(), torch.version.cuda)


if __name__ == "__main__":
    main()
