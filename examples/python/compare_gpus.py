"""Two GPUs on the same step: time with its interval, throughput, and whether the model fits."""

import foretoken

for device in ("h100_sxm", "l40s"):
    step = foretoken.step(
        model="Llama-3.1-8B", device=device, phase="decode", batch=32, context_len=2048, kv_cache_dtype="fp8"
    )
    seconds = step["seconds"]
    print(
        f"{device:10} {seconds['value'] * 1e3:6.2f} ms ({seconds['low'] * 1e3:.2f} to {seconds['high'] * 1e3:.2f}), "
        f"{step['tokens_per_second']:,.0f} tokens/s, {'fits' if step['fits_in_memory'] else 'does not fit'}"
    )
    slowest = max(step.at("stages.0.operators"), key=lambda operator: operator["seconds"]["value"])
    print(f"{'':10} most of it in {slowest['name']}")
