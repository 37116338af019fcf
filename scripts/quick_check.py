#!/usr/bin/env python3
"""Do the intervals of `plan serve --quick` hold what `plan serve` simulates?

    scripts/quick_check.py [--program build/foretoken] [--first N]

Asks 15 questions with and without --quick. For each device and engine, the simulated capacity of its best layout is compared with the
interval of capacity that --quick gives. Takes some minutes of CPU time.
"""
import argparse
import json
import subprocess

QUESTIONS = [
    ("Llama-3.1-8B-Instruct", "1xL40S", "chat"),
    ("Llama-3.1-8B-Instruct", "1xH100", "chat"),
    ("Llama-3.1-8B-Instruct", "1xA100_sxm", "batch"),
    ("Llama-3.1-8B-Instruct", "1xH200", "rag"),
    ("Llama-3.1-8B-Instruct", "2xH100", "code"),
    ("Llama-3.1-70B-Instruct", "8xH100", "chat"),
    ("Llama-3.1-70B-Instruct", "4xH200", "batch"),
    ("Llama-3.1-70B-Instruct", "4xB200", "chat"),
    ("Qwen3-32B", "2xH100", "chat"),
    ("Qwen3-32B", "4xA100_sxm", "batch"),
    ("Qwen3-30B-A3B", "2xA100_sxm", "chat"),
    ("Qwen3-30B-A3B", "1xH200", "code"),
    ("gpt-oss-120b", "1xH100", "agent"),
    ("gpt-oss-120b", "1xB200", "chat"),
    ("DeepSeek-R1", "8xH200", "chat"),
]


def rows(program, question, *more):
    model, hardware, traffic = question
    command = [program, "plan", "serve", "--json", "--model", model, "--hardware", hardware, "--traffic", traffic, *more]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if answer.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)}: exit status {answer.returncode}")
    listed = json.loads(answer.stdout)["by_device_and_engine"]
    return {(row["device"], row["engine"]): (row["answer"] or {}).get("capacity_requests_per_s") for row in listed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/foretoken")
    parser.add_argument("--first", type=int, default=len(QUESTIONS), help="ask only the first N questions")
    options = parser.parse_args()
    inside = compared = 0
    for question in QUESTIONS[: options.first]:
        simulated, quick = rows(options.program, question), rows(options.program, question, "--quick")
        for key, found in simulated.items():
            guess = quick.get(key)
            if not found or not guess:
                if found or guess:
                    print(f"{question} {key}: only {'simulations find' if found else '--quick finds'} a layout", flush=True)
                    compared += 1
                continue
            holds = guess["low"] <= found["value"] <= guess["high"]
            inside, compared = inside + holds, compared + 1
            print(f"{question} {key}: simulated {found['value']:.3g}, quick {guess['value']:.3g} "
                  f"({guess['low']:.3g} to {guess['high']:.3g}){'' if holds else '  OUTSIDE'}", flush=True)
    print(f"{inside} of {compared} simulated capacities lie inside the intervals of --quick")


if __name__ == "__main__":
    main()
