"""The fastest ways to train on eight GPUs, and the flags of Megatron-LM for the best one."""

import foretoken

search = foretoken.plan("train", model="Llama-3.1-8B", cluster="h100_ib_rail", devices=8, global_batch_size=32, best=3)
print(f"{search['looked_at']} plans, {search['too_large']} of them too large")
for found in search["best"]:
    plan = found["plan"]
    layout = f"tp {plan['tensor']} pp {plan['pipeline']} cp {plan['context']} dp {plan['data']}"
    print(f"  {layout}: {found['seconds']['value']:.2f} s, MFU {found['mfu']:.0%}")
print(search["megatron_flags"])
print(f"To see it again: {search.command}")
