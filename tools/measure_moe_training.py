"""Times whole training steps of mixtures of experts on one GPU, as PyTorch's own stacks run them.

    python3 tools/measure_moe_training.py --device-name h200_sxm --out moe_steps.csv --kernels moe_kernels.csv

Models have the layers' sizes of published ones and fewer layers, so that weights, gradients and AdamW's moments fit on
one GPU. Two ways to run the experts: `transformers` (its own modules: grouped multiplies, or one expert after another)
and `decoder` (a plain decoder that sorts tokens by expert, gathers them, multiplies in groups and adds the results back,
as torchtitan does), eager, and with layers and loss through torch.compile. All in bf16. Rows are those of `foretoken validate training`.
"""
import argparse
import csv
import gc
import statistics
import time
import traceback

import torch
import torch.nn.functional as F
from torch import nn

import measure_training as plain
from measure_finetuning import counted_kernels, gigabytes, synchronize

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"

# layers, hidden, heads, KV heads, head, experts, of a token, inner of an expert, shared experts, vocabulary
SIZES = {
    "experts-128x768": (8, 2048, 32, 4, 128, 128, 8, 768, 0, 151936),
    "experts-64x1408": (8, 2048, 16, 16, 128, 64, 6, 1408, 2, 102400),
    "experts-8x14336": (3, 4096, 32, 8, 128, 8, 2, 14336, 0, 32000),
    "experts-40x512": (16, 1536, 24, 8, 64, 40, 8, 512, 0, 49152),
    "tiny": (2, 64, 4, 2, 16, 4, 2, 32, 1, 512),
}


def points():
    for model in ("experts-128x768", "experts-64x1408", "experts-8x14336", "experts-40x512"):
        for batch, length in ((1, 4096), (4, 4096), (2, 1024)):
            for stack in ("eager", "compile"):
                yield {"code": "decoder", "stack": stack, "model": model, "batch": batch, "input_len": length}
    for experts in ("grouped_mm", "eager"):
        for model in ("experts-128x768", "experts-8x14336"):
            for batch, length in ((1, 4096), (4, 4096)):
                yield {"code": "transformers", "stack": experts, "model": model, "batch": batch, "input_len": length}


class Experts(nn.Module):
    def __init__(self, experts, hidden, inner):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(experts, inner, hidden) * 0.02)
        self.up = nn.Parameter(torch.randn(experts, inner, hidden) * 0.02)
        self.down = nn.Parameter(torch.randn(experts, hidden, inner) * 0.02)

    def forward(self, x, counts):
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        inner = F.silu(torch._grouped_mm(x, self.gate.transpose(-2, -1), offs=ends))
        inner = inner * torch._grouped_mm(x, self.up.transpose(-2, -1), offs=ends)
        return torch._grouped_mm(inner, self.down.transpose(-2, -1), offs=ends)


class Mixture(nn.Module):
    def __init__(self, hidden, experts, of_token, inner, shared):
        super().__init__()
        self.count, self.of_token = experts, of_token
        self.router = nn.Linear(hidden, experts, bias=False)
        self.experts = Experts(experts, hidden, inner)
        self.shared = nn.ModuleList()
        if shared:
            self.shared.extend([nn.Linear(hidden, shared * inner, bias=False), nn.Linear(hidden, shared * inner, bias=False),
                                nn.Linear(shared * inner, hidden, bias=False)])

    def forward(self, x):
        shape, x = x.shape, x.flatten(0, 1)
        scores = F.softmax(self.router(x).float(), dim=-1)
        weights, chosen = torch.topk(scores, self.of_token, dim=-1, sorted=False)
        weights = weights / weights.sum(-1, keepdim=True)
        counts = torch.histc(chosen.flatten().float(), bins=self.count, min=0, max=self.count)
        order = torch.argsort(chosen.flatten(), stable=True)
        places = (order // self.of_token).reshape(-1, 1).expand(-1, x.shape[1])
        received = torch.gather(x, 0, places)
        received = (received.float() * weights.flatten()[order].reshape(-1, 1)).to(x.dtype)
        made = self.experts(received, counts)
        if self.shared:
            gate, up, down = self.shared
            out = down(F.silu(gate(x)) * up(x))
        else:
            out = torch.zeros_like(x)
        return out.scatter_add(0, places, made).reshape(shape)


class Layer(nn.Module):
    def __init__(self, hidden, heads, kv_heads, head, *mixture):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, head
        self.norm1, self.norm2 = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * head, bias=False)
        self.out = nn.Linear(heads * head, hidden, bias=False)
        self.mixture = Mixture(hidden, *mixture)

    def forward(self, x, rotation):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, -1, self.size).split(
            (self.heads, self.kv_heads, self.kv_heads), dim=2)
        q, k = plain.rotated(q, rotation), plain.rotated(k, rotation)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                           enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return x + self.mixture(self.norm2(x))


def loss_of_logits(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


class Decoder(nn.Module):
    def __init__(self, length, layers, hidden, heads, kv_heads, head, experts, of_token, inner, shared, vocabulary):
        super().__init__()
        self.loss = loss_of_logits
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(
            Layer(hidden, heads, kv_heads, head, experts, of_token, inner, shared) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        angles = torch.outer(torch.arange(length).float(), 1e4 ** -torch.linspace(0, 1, head // 2))
        self.register_buffer("cos", angles.cos()[None, :, None, :])
        self.register_buffer("sin", angles.sin()[None, :, None, :])

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, (self.cos, self.sin))
        return self.loss(self.head(self.norm(x)), targets)


def transformers_model(one):
    import transformers

    layers, hidden, heads, kv_heads, head, experts, of_token, inner, _, vocabulary = SIZES[one["model"]]
    common = dict(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=kv_heads,
                  head_dim=head, num_experts_per_tok=of_token, vocab_size=vocabulary, max_position_embeddings=16384,
                  use_cache=False, tie_word_embeddings=False)
    if one["model"] == "experts-8x14336":
        config = transformers.MixtralConfig(num_local_experts=experts, intermediate_size=inner, **common)
    else:
        config = transformers.Qwen3MoeConfig(num_experts=experts, moe_intermediate_size=inner, intermediate_size=3 * inner,
                                             norm_topk_prob=True, **common)
    config._experts_implementation = one["stack"]
    config._attn_implementation = "sdpa"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        model = transformers.AutoModelForCausalLM.from_config(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    print("experts:", getattr(model.config, "_experts_implementation", None), flush=True)
    return model, lambda run, data: run(input_ids=data, labels=data, use_cache=False).loss


def decoder_model(one):
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        model = Decoder(one["input_len"], *SIZES[one["model"]])
    torch.set_default_dtype(torch.float32)
    if one["stack"] == "compile":
        for place, layer in enumerate(model.layers):
            model.layers[place] = torch.compile(layer)
        model.loss = torch.compile(loss_of_logits)
    return model, lambda run, data: run(data, data)


def measure(one, want_kernels):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, loss_of = (transformers_model if one["code"] == "transformers" else decoder_model)(one)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    data = torch.randint(0, SIZES[one["model"]][9], (one["batch"], one["input_len"]), device=DEVICE)

    def step():
        loss_of(model, data).backward()
        if one["code"] == "transformers":
            nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    synchronize()
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
    times, launched = [], []
    for _ in range(8):
        start = time.perf_counter()
        step()
        launched.append(1e3 * (time.perf_counter() - start))
        synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    start = time.perf_counter()
    for _ in range(8):
        step()
    synchronize()
    running = 1e3 * (time.perf_counter() - start) / 8
    peak = gigabytes("max_memory_allocated")
    kernels = counted_kernels(step) if want_kernels else []
    return {
        **one,
        "median_ms": round(statistics.median(times), 3),
        "fastest_ms": round(min(times), 3),
        "running_ms": round(running, 3),
        "host_ms": round(statistics.median(launched), 3),
        "kernels_ms": round(sum(kernel[2] for kernel in kernels) / 1e3, 3),
        "kernels": sum(kernel[1] for kernel in kernels),
        "peak_allocated_gb": peak,
        "parameters": sum(p.numel() for p in parameters),
    }, kernels


def training_row(number, device, measured):
    layers, hidden, heads, kv_heads, head, experts, of_token, inner, shared, vocabulary = SIZES[measured["model"]]
    code = measured["code"]
    stack = "transformers" if code == "transformers" else {"eager": "torchtitan-eager", "compile": "torchtitan"}[measured["stack"]]
    return {
        "id": f"{device}-moe-{number:02d}", "source": f"experts-{code if measured['stack'] == 'grouped_mm' else measured['stack']}", "model": measured["model"],
        "task": "pretrain", "layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "head_dim": head,
        "ffn": inner, "gated": 1, "vocab": vocabulary, "seq": measured["input_len"], "experts": experts, "topk": of_token,
        "shared_experts": shared, "moe_ffn": inner, "dense_layers": 0, "attn": "gqa" if kv_heads < heads else "mha",
        "gpu": device, "gpus_per_node": 8, "n_gpus": 1, "tp": 1, "sp": 0, "cp": 1, "pp": 1, "vpp": 1, "dp": 1, "ep": 1,
        "zero": 0, "micro_batch": measured["batch"], "global_batch": measured["batch"], "dtype": "bf16",
        "recompute": "none", "iter_time_s": f"{measured['median_ms'] / 1e3:.6g}", "tflops_per_gpu": "", "tflops_def": "",
        "mfu_pct": "", "tokens_per_s_per_gpu": "", "steps_n": "", "step_cv": "", "primary": "iter_time_s",
        "config_grade": "A", "notes": "bf16", "stack": stack, "cluster": device, "tied": 0,
        "optimizer": "adam-bf16-weights", "clips": 1 if code == "transformers" else 0,
        **{name: measured[name] for name in ("fastest_ms", "running_ms", "host_ms", "kernels_ms", "kernels",
                                             "peak_allocated_gb", "parameters")},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device-name", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--kernels", required=True, help="CSV file of the kernels of a step of each point")
    parser.add_argument("--seconds", type=float, default=500, help="start no new point after this many seconds [500]")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, also on a CPU")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name() if CUDA else "CPU", flush=True)
    chosen = list(points())
    if arguments.smoke:
        chosen = [{"code": code, "stack": stack, "model": "tiny", "batch": 1, "input_len": 64}
                  for code, stack in (("decoder", "eager"), ("decoder", "compile"), ("transformers", "grouped_mm"),
                                      ("transformers", "eager"))]
    with open(arguments.out, "w", newline="") as file, open(arguments.kernels, "w", newline="") as kernel_file:
        kernel_writer = csv.writer(kernel_file)
        kernel_writer.writerow(["row", "kernel", "launches", "us"])
        writer, rows = None, 0
        for one in chosen:
            if time.perf_counter() - begin > arguments.seconds:
                print("no time left for", one, flush=True)
                continue
            try:
                measured, kernels = measure(one, True)
                rows += 1
                row = training_row(rows, arguments.device_name, measured)
                if writer is None:
                    writer = csv.DictWriter(file, row)
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                for name, count, us in kernels[:60]:
                    kernel_writer.writerow([rows, name[:160], count, round(us, 1)])
                kernel_file.flush()
                print(f"{time.perf_counter() - begin:.0f} s", measured, flush=True)
            except Exception:
                print(one, flush=True)
                traceback.print_exc()
            gc.collect()
            if CUDA:
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
