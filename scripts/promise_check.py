#!/usr/bin/env python3
"""What `foretoken serve` measures at the rate that `foretoken plan serve` promises, for the questions of docs/planning.md.

    scripts/promise_check.py [--program build/foretoken] [--seeds 3] [--requests 10000] [NUMBER ...]

For each question: the promised layout and rate, the CPU time of the search, and p99 TTFT and TPOT as means over the seeds, with the largest share of a
limit. Exit status 1 where a mean is more than 2% above its limit. Layouts with separate pools are not checked.
"""
import argparse
import json
import os
import re
import subprocess
import sys

DEMO = "--dataset-name lognormal --random-input-len 1024 --random-output-len 256 --lognormal-sigma 0.7"
CHAT = "--dataset-name lognormal --random-input-len 1155 --random-output-len 211 --lognormal-sigma 0.9"  # data/traffic/uses.json
QUESTIONS = [  # and the load of `serve`
    ("--model Llama-3.1-70B --hardware h100_sxm:8 --slo ttft:500,tpot:50 --engines vllm,sglang,trtllm " + DEMO, DEMO),
    ("--model Llama-3.1-8B --hardware 1xL40S --traffic chat --engines vllm", CHAT),
    ("--model Llama-3.1-8B --hardware 2xL40S --traffic chat --engines vllm", CHAT),
    ("--model Llama-3.1-8B --hardware 3xL40S --traffic chat --engines vllm", CHAT),
    ("--model Llama-3.1-8B --hardware 1xH100 --traffic chat", CHAT),
    ("--model Llama-3.1-70B --hardware 8xH100 --traffic chat", CHAT),
    ("--model DeepSeek-R1 --hardware 8xH200 --traffic chat", CHAT),
]
FLAGS = {"tp": "-tp", "pp": "-pp", "x": "--replicas", "seqs": "--max-num-seqs", "tokens": "--max-num-batched-tokens"}


def output(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"failed: {' '.join(command)}")
    return done.stdout.decode()


def layout_flags(key):
    """Flags of `serve` for a layout's key; nothing where it has parts that this script does not know."""
    device, engine, scheme, kv, *parts = key.split("/")
    # Planned engines cut prompts, and their launch lines say so.
    flags = ["--device", device, "--engine", engine, "--kv-cache-dtype", kv.removeprefix("kv-"), "--enable-chunked-prefill"]
    if scheme != "config":
        flags += ["--quantization", scheme]
    for part in parts:
        name, number = re.fullmatch(r"([a-z-]+)(\d*)", part).groups()
        if name == "ep":
            flags.append("--enable-expert-parallel")
        elif name == "dp" and number != "1":
            flags += ["-dp", number]
        elif name in FLAGS and number != "0":
            flags += [FLAGS[name], number]
        elif name not in FLAGS and name != "dp":
            return None
    return flags


def check(program, question, load, seeds, requests):
    """False where a limit is broken by more than 2%."""
    before = os.times()
    answer = json.loads(output([program, "plan", "serve", "--json"] + question.split()))
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    winner = answer["winner"]
    if winner is None:
        sys.exit(f"nothing serves: {question}")
    rate = winner["capacity_requests_per_s"]["value"]
    head = f"{question}\n  {winner['layout']}: {rate:.3g} requests/s promised, {cpu:.1f} s of CPU"
    flags = None if "+" in winner["key"] else layout_flags(winner["key"])
    if flags is None:
        print(f"{head}; not checked ({winner['key']})", flush=True)
        return True
    limits = {name: float(ms) for name, ms in re.findall(r"(ttft|tpot)<(\d+)ms@p99", " ".join(answer["slos"]))}
    runs = [json.loads(output([program, "serve", "--json", "--model", answer["model"], "--request-rate", str(rate), "--num-prompts", str(requests),
                               "--seed", str(seed)] + flags + load.split())) for seed in range(seeds)]
    means = {name: sum(run[f"p99_{name}_ms"] for run in runs) / seeds for name in limits}
    worst = max(means[name] / limits[name] for name in limits)
    each = " ".join(f"{run['p99_ttft_ms']:.0f}/{run['p99_tpot_ms']:.1f}" for run in runs)
    print(f"{head}; serve: {means['ttft']:.0f}/{means['tpot']:.1f} ms of {limits['ttft']:.0f}/{limits['tpot']:.0f} ({worst:.2f} of a limit; {each})", flush=True)
    return worst <= 1.02


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/foretoken")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("numbers", type=int, nargs="*", help="questions to ask, from 1 [all]")
    given = parser.parse_args()
    chosen = [QUESTIONS[i - 1] for i in given.numbers] or QUESTIONS
    kept = [check(given.program, question, load, given.seeds, given.requests) for question, load in chosen]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
