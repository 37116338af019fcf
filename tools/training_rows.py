"""Steps that were timed on one GPU, as rows of `foretoken validate training`."""

# layers, hidden, heads, KV heads, head, inner, gated, vocabulary, tied
SIZES = {
    "openai-community/gpt2": (12, 768, 12, 12, 64, 3072, 0, 50304, 1),
    "openai-community/gpt2-medium": (24, 1024, 16, 16, 64, 4096, 0, 50304, 1),
    "openai-community/gpt2-large": (36, 1280, 20, 20, 64, 5120, 0, 50304, 1),
    "openai-community/gpt2-xl": (48, 1600, 25, 25, 64, 6400, 0, 50304, 1),
    "meta-llama/Llama-3.2-1B": (16, 2048, 32, 8, 64, 8192, 1, 128256, 1),
    "meta-llama/Llama-3.2-3B": (28, 3072, 24, 8, 128, 8192, 1, 128256, 1),
    "meta-llama/Llama-3.1-8B": (32, 4096, 32, 8, 128, 14336, 1, 128256, 0),
    "Qwen/Qwen2.5-0.5B": (24, 896, 14, 2, 64, 4864, 1, 151936, 1),
    "Qwen/Qwen2.5-1.5B": (28, 1536, 12, 2, 128, 8960, 1, 151936, 1),
}
# The stack of foretoken that runs such steps, by code, compiler and weights in fp32 under autocast.
STACKS = {
    ("decoder", "compile", "bf16-mixed"): "nanogpt",
    ("decoder", "compile", "bf16"): "torchtitan",
    ("decoder", "eager", "bf16-mixed"): "nanogpt-eager",
    ("decoder", "eager", "bf16"): "torchtitan-eager",
}
ONE_GPU = {"n_gpus": 1, "tp": 1, "sp": 0, "cp": 1, "pp": 1, "vpp": 1, "dp": 1, "ep": 1, "zero": 0}
DENSE = {"experts": 0, "topk": 0, "shared_experts": 0, "moe_ffn": 0}
NOT_GIVEN = ("tflops_per_gpu", "tflops_def", "mfu_pct", "tokens_per_s_per_gpu", "steps_n", "step_cv")


def training_row(number, measured):
    """`measured`: a row of measure_training.py or measure_finetuning.py."""
    layers, hidden, heads, kv_heads, head, inner, gated, vocabulary, tied = SIZES[measured["model"]]
    code = measured.get("code", "decoder")
    rank = int(measured.get("lora_rank") or 0)
    unfused = measured.get("attention") == "eager"
    source = f"{code}{'-lora' if rank else ''}-{measured['stack']}{'-unfused' if unfused else ''}"
    stack = STACKS.get((code, measured["stack"], measured["precision"]), "transformers")
    if code == "transformers" and measured["stack"] == "compile":
        stack = "transformers-compile"
    batch, micro_batches = int(measured["batch"]), int(measured.get("micro_batches") or 1)
    recomputes = int(measured.get("checkpointing") or 0)
    return {
        "id": f"{measured['device']}-{number:02d}",
        "source": source,
        "model": measured["model"],
        "task": "lora" if rank else "pretrain",
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head,
        "ffn": inner,
        "gated": gated,
        "vocab": vocabulary,
        "seq": measured["input_len"],
        **DENSE,
        "dense_layers": layers,
        "attn": "gqa" if kv_heads < heads else "mha",
        "gpu": measured["device"],
        "gpus_per_node": 8,
        **ONE_GPU,
        "micro_batch": batch,
        "global_batch": batch * micro_batches,
        "dtype": "bf16",
        "recompute": "full" if recomputes else "none",
        "iter_time_s": f"{float(measured['median_ms']) / 1e3:.6g}",
        **dict.fromkeys(NOT_GIVEN, ""),
        "primary": "iter_time_s",
        "config_grade": "A",
        "notes": measured["precision"],
        "stack": "transformers-unfused" if unfused else stack,
        "cluster": measured["device"],
        "tied": tied,
        "optimizer": "adam" if measured["precision"] == "bf16-mixed" else "adam-bf16-weights",
        "clips": 1 if code == "transformers" else 0,
        "lora_rank": rank or "",
        "lora_target": measured.get("lora_on", ""),
        **{name: measured.get(name, "") for name in (
            "peak_allocated_gb", "fastest_ms", "running_ms", "host_ms", "kernels_ms", "kernels", "resident_gb",
            "reserved_gb", "parameters", "trained")},
    }
