"""Times whole fine-tuning and small training steps on one GPU, and counts their kernels.

    python3 tools/measure_finetuning.py --device-name h200_sxm --out fine_tuning.csv --kernels fine_tuning_kernels.csv

Decoders are transformers' own classes with random weights, as Hugging Face's Trainer runs them (gradients clipped, fused
AdamW), or the plain ones of measure_training.py. Adapters are those of PEFT: the frozen matrix and the scaled pair run
one by one and are added. `bf16` keeps all in bf16 (torchtune), `bf16-mixed` has fp32 weights or adapters under autocast.
Points come in the order of their worth, and no point starts after --seconds. Rows are those of `foretoken validate
training`. With --kernels, launches are up to 1.3 times as slow after the first point, because the profiler has run.
"""
import argparse
import csv
import gc
import statistics
import time
import traceback

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import measure_training as plain
from training_rows import training_row

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"

# class, layers, heads, KV heads, hidden, head, inner, vocabulary, tied
SIZES = {
    "meta-llama/Llama-3.2-1B": ("Llama", 16, 32, 8, 2048, 64, 8192, 128256, True),
    "meta-llama/Llama-3.2-3B": ("Llama", 28, 24, 8, 3072, 128, 8192, 128256, True),
    "meta-llama/Llama-3.1-8B": ("Llama", 32, 32, 8, 4096, 128, 14336, 128256, False),
    "Qwen/Qwen2.5-0.5B": ("Qwen2", 24, 14, 2, 896, 64, 4864, 151936, True),
    "Qwen/Qwen2.5-1.5B": ("Qwen2", 28, 12, 2, 1536, 128, 8960, 151936, True),
    "tiny": ("Llama", 2, 4, 2, 64, 16, 128, 512, True),
}
LLAMA_1B, LLAMA_3B, LLAMA_8B = "meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.1-8B"
QWEN_HALF, QWEN_1B = "Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-1.5B"
GPT2 = "openai-community/gpt2"

USUAL = {
    "code": "transformers",
    "stack": "eager",
    "precision": "bf16",
    "attention": "sdpa",
    "lora_rank": 0,
    "lora_on": "",
    "checkpointing": 0,
    "micro_batches": 1,
}


def point(model, batch, input_len, **options):
    return {"model": model, **USUAL, **options, "batch": batch, "input_len": input_len}


def lora(model, batch, input_len, **options):
    return point(model, batch, input_len, **{"lora_rank": 16, "lora_on": "all", **options})


def points():
    return [
        lora(LLAMA_8B, 1, 2048),
        lora(LLAMA_8B, 1, 8192, checkpointing=1),
        lora(LLAMA_1B, 4, 2048),
        lora(LLAMA_1B, 4, 2048, checkpointing=1),
        lora(LLAMA_1B, 1, 512),
        point(LLAMA_1B, 4, 2048),
        point(LLAMA_1B, 4, 2048, checkpointing=1),
        point(LLAMA_1B, 4, 2048, precision="bf16-mixed"),
        point(LLAMA_1B, 1, 2048, micro_batches=4),
        point(LLAMA_1B, 1, 512),
        point(LLAMA_1B, 4, 2048, attention="eager"),
        point(LLAMA_1B, 4, 4096, code="decoder", checkpointing=1),
        point(GPT2, 1, 512, code="decoder", precision="bf16-mixed"),
        point(GPT2, 8, 1024, code="decoder", precision="bf16-mixed", micro_batches=4),
        point(LLAMA_1B, 4, 4096, code="decoder"),
        point(LLAMA_1B, 4, 4096, code="decoder", stack="compile"),
        point(GPT2, 1, 512, code="decoder", precision="bf16-mixed", stack="compile"),
        point(LLAMA_1B, 4, 2048, stack="compile"),
        lora(LLAMA_1B, 4, 2048, stack="compile"),
        point(LLAMA_1B, 4, 4096, code="decoder", stack="compile", checkpointing=1),
        lora(LLAMA_1B, 4, 2048, lora_on="attention"),
        lora(LLAMA_1B, 4, 2048, precision="bf16-mixed"),
        lora(LLAMA_8B, 1, 8192),
        lora(LLAMA_8B, 1, 512),
        lora(LLAMA_8B, 2, 4096, lora_on="attention"),
        lora(LLAMA_8B, 2, 2048, checkpointing=1, micro_batches=4),
        point(LLAMA_8B, 1, 4096, checkpointing=1),
        point(LLAMA_3B, 2, 2048),
        point(LLAMA_3B, 2, 4096, checkpointing=1),
        lora(LLAMA_3B, 2, 4096),
        lora(LLAMA_3B, 1, 2048, checkpointing=1, micro_batches=4),
        point(QWEN_HALF, 8, 1024),
        point(QWEN_HALF, 1, 512),
        point(QWEN_1B, 4, 2048, precision="bf16-mixed", checkpointing=1),
        point(LLAMA_1B, 1, 512, code="decoder"),
        point(GPT2, 8, 1024, code="decoder", precision="bf16-mixed"),
        point(GPT2, 8, 1024, code="decoder", precision="bf16-mixed", stack="compile"),
        point(LLAMA_3B, 2, 8192, code="decoder", precision="bf16-mixed", checkpointing=1),
    ]


def smoke_points():
    return [
        point("tiny", 2, 32),
        point("tiny", 2, 32, attention="eager", checkpointing=1),
        point("tiny", 2, 32, precision="bf16-mixed", micro_batches=2),
        lora("tiny", 2, 32, lora_on="attention"),
        lora("tiny", 2, 32, precision="bf16-mixed", checkpointing=1),
        point("tiny", 2, 32, code="decoder", checkpointing=1),
    ]


class Adapted(nn.Module):
    """A frozen matrix beside a trained pair of rank `rank`."""

    def __init__(self, base, rank, dtype):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False, device=DEVICE, dtype=dtype)
        self.up = nn.Linear(rank, base.out_features, bias=False, device=DEVICE, dtype=dtype)
        self.scale = 2.0

    def forward(self, x):
        return self.base(x) + self.up(self.down(x.to(self.down.weight.dtype))) * self.scale


class Checkpointed(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *inputs):
        return checkpoint(self.layer, *inputs, use_reentrant=False)


def transformers_model(one):
    import transformers

    family, layers, heads, kv_heads, hidden, head, inner, vocabulary, tied = SIZES[one["model"]]
    config = getattr(transformers, family + "Config")(
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads, hidden_size=hidden,
        head_dim=head, intermediate_size=inner, vocab_size=vocabulary, tie_word_embeddings=tied,
        max_position_embeddings=32768, use_cache=False)
    with torch.device(DEVICE):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=one["attention"])
    # Frozen weights are bf16 in either precision.
    keeps_fp32 = one["precision"] == "bf16-mixed" and not one["lora_rank"]
    model = model.to(torch.float32 if keeps_fp32 else torch.bfloat16)
    if one["lora_rank"]:
        model.requires_grad_(False)
        wanted = ["q_proj", "k_proj", "v_proj", "o_proj"]
        if one["lora_on"] == "all":
            wanted += ["gate_proj", "up_proj", "down_proj"]
        dtype = torch.float32 if one["precision"] == "bf16-mixed" else torch.bfloat16
        for module in list(model.modules()):
            for name, child in list(module.named_children()):
                if name in wanted and isinstance(child, nn.Linear):
                    setattr(module, name, Adapted(child, one["lora_rank"], dtype))
    if one["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    return model, lambda run, data: run(input_ids=data, labels=data, use_cache=False).loss


def plain_model(one):
    sizes = plain.SIZES.get(one["model"], (2, 4, 2, 64, 128, 512, True))
    model = plain.Decoder(*sizes, one["input_len"]).to(DEVICE)
    if one["precision"] == "bf16":
        model = model.bfloat16()
    if one["checkpointing"]:
        model.layers = nn.ModuleList(Checkpointed(layer) for layer in model.layers)
    return model, lambda run, data: run(data, data)


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


def gigabytes(name):
    return round(getattr(torch.cuda, name)() / 1e9, 3) if CUDA else 0


def counted_kernels(step):
    """Name, launches and microseconds of the kernels of a step."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA if CUDA else ProfilerActivity.CPU]) as trace:
        step()
        synchronize()
    found = []
    for event in trace.key_averages():
        spent = getattr(event, "self_device_time_total", getattr(event, "self_cuda_time_total", 0))
        if spent > 0:
            found.append((event.key, event.count, spent))
    return sorted(found, key=lambda kernel: -kernel[2])


def measure(one, seconds, want_kernels):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, loss_of = (transformers_model if one["code"] == "transformers" else plain_model)(one)
    if CUDA:
        torch.cuda.empty_cache()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    run = torch.compile(model) if one["stack"] == "compile" else model
    vocabulary = plain.SIZES[one["model"]][5] if one["model"] in plain.SIZES else SIZES[one["model"]][7]
    data = [torch.randint(0, vocabulary, (one["batch"], one["input_len"]), device=DEVICE)
            for _ in range(one["micro_batches"])]
    autocast = one["precision"] == "bf16-mixed"

    def step():
        for tokens in data:
            with torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
                loss = loss_of(run, tokens)
            (loss / len(data)).backward()
        if one["code"] == "transformers":
            nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    synchronize()
    start = time.perf_counter()
    step()
    synchronize()
    steps = int(max(4, min(12, seconds / (time.perf_counter() - start))))
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
    times, launched = [], []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        launched.append(1e3 * (time.perf_counter() - start))
        synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    start = time.perf_counter()
    for _ in range(steps):
        step()
    synchronize()
    running = 1e3 * (time.perf_counter() - start) / steps
    peak, reserved, resident = map(gigabytes, ("max_memory_allocated", "max_memory_reserved", "memory_allocated"))
    kernels = []
    if want_kernels:
        try:
            kernels = counted_kernels(step)
        except Exception:
            traceback.print_exc()
    middle = statistics.median(times)
    tokens = one["batch"] * one["input_len"] * one["micro_batches"]
    return {
        **one,
        "median_ms": round(middle, 3),
        "fastest_ms": round(min(times), 3),
        "running_ms": round(running, 3),
        "host_ms": round(statistics.median(launched), 3),
        "kernels_ms": round(sum(kernel[2] for kernel in kernels) / 1e3, 3),
        "kernels": sum(kernel[1] for kernel in kernels),
        "tokens_per_s": round(tokens / middle * 1e3),
        "peak_allocated_gb": peak,
        "resident_gb": resident,
        "reserved_gb": reserved,
        "parameters": sum(p.numel() for p in model.parameters()),
        "trained": sum(p.numel() for p in trained),
    }, kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device-name", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--kernels", default="", help="CSV file of the kernels of a step of each point")
    parser.add_argument("--seconds", type=float, default=360, help="start no new point after this many seconds [360]")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, also on a CPU")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    torch.set_float32_matmul_precision("high")
    print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name() if CUDA else "CPU", flush=True)
    try:
        import transformers

        print("transformers", transformers.__version__, flush=True)
        with open("/proc/cpuinfo") as cpu:
            print(next(line for line in cpu if "model name" in line), flush=True)
    except Exception:
        traceback.print_exc()
    writer = kernel_writer = kernel_file = None
    if arguments.kernels:
        kernel_file = open(arguments.kernels, "w", newline="")
        kernel_writer = csv.writer(kernel_file)
        kernel_writer.writerow(["row", "kernel", "launches", "us"])
    with open(arguments.out, "w", newline="") as file:
        rows = 0
        for one in smoke_points() if arguments.smoke else points():
            spent = time.perf_counter() - begin
            # A compiled point may take half a minute before its first step.
            if spent > arguments.seconds - (40 if one["stack"] == "compile" else 0):
                print("no time left for", one, flush=True)
                continue
            row = None
            try:
                row, kernels = measure(one, 2.0, bool(arguments.kernels))
            except Exception:
                print(one, flush=True)
                traceback.print_exc()
            if row is not None:
                rows += 1
                if not arguments.smoke:
                    row = training_row(rows, {"device": arguments.device_name, **row})
                if writer is None:
                    writer = csv.DictWriter(file, row)
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                if kernel_writer:
                    for name, count, us in kernels[:60]:
                        kernel_writer.writerow([rows, name[:160], count, round(us, 1)])
                    kernel_file.flush()
                print(f"{time.perf_counter() - begin:.0f} s", row, flush=True)
            gc.collect()
            if CUDA:
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
