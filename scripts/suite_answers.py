#!/usr/bin/env python3
"""Writes data/suite/answers/*.csv: what prediction tools answered to cases that somebody measured.

  scripts/suite_answers.py --foretoken build/foretoken --data $FORETOKEN_DATA [--calculon DIR]
      [--llmservingsim DIR] --out data/suite/answers

Answers of other tools come from files that they published, or from running them (Calculon). A tool whose folder is
not given keeps the file it has. data/suite/answers/README.md says where each row comes from.
"""

import argparse
import csv
import gzip
import json
import os
import pathlib
import re
import subprocess
import tempfile

COLUMNS = ["scenario", "value", "low", "high", "level", "group", "size", "measured", "withheld", "part_of", "source"]
UNSEEN_MODELS = ("meta-llama/Llama-3.2-3B,Qwen/Qwen2.5-7B,mistralai/Mistral-7B-v0.3,openai-community/gpt2-xl,"
                 "google/gemma-2-2b,microsoft/Phi-4-mini-instruct")
# Cards of the suite, and the runs of arXiv 2205.05198, table 5, that they ask for.
CALCULON_CARDS = {"megatron-22B": "N20", "gpt3-175B": "T3.1", "turing-530B": "N21", "megatron-1T": "T3.3"}
NEUSIGHT_FITTED = ("V100", "P100", "T4", "MI100", "MI210")  # NeuSight's own list; A100-80GB is not on it
FIRST_WITHHELD_RELEASE = "26.06"  # of Megatron-Bridge
HGX_H100 = ("--topology Switch --dims 8 --bandwidth 400 --latency 936.25 --splits 4 --active 2 --local-mem-bw 3350 "
            "--endpoint-delay 10 --algorithm ring --op all_reduce").split()


def number(text):
    return f"{float(text):.6g}"


def row(scenario, value, level, group, measured, source, **more):
    return {"scenario": scenario, "value": value, "level": level, "group": group, "measured": measured,
            "source": source, **more}


def write(folder, tool, rows):
    with open(folder / f"{tool}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{tool}: {len(rows)} rows")


class Foretoken:
    def __init__(self, program, scratch, environment=None):
        self.program, self.scratch, self.environment = program, scratch, environment

    def rows(self, *arguments):
        out = self.scratch / "rows.csv"
        subprocess.run([self.program, "validate", *arguments, "--out", out], check=True, stdout=subprocess.DEVNULL,
                       env=self.environment)
        with open(out) as file:
            return list(csv.DictReader(file))

    def json(self, *arguments):
        done = subprocess.run([self.program, *arguments, "--json"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)


def neusight(folder, data, ours):
    """Whole models of NeuSight's repository with the predictions that it holds, and ours for the same rows."""
    source = "sitar-lab/NeuSight 6945927, end-to-end results"
    tools = {"neusight": "neusight_ms", "habitat": "habitat_ms", "roofline": "roofline_ms"}
    answers = {tool: [] for tool in tools}
    with open(data / "neusight/end_to_end.csv") as file:
        table = list(csv.DictReader(file))
    names = {}
    for at, case in enumerate(table, 1):
        if case["parallelism"] or case["fusion"] == "1":
            continue
        name = "/".join(["neusight", case["device"], case["model"], case["mode"], f"b{case['batch']}"])
        names[at] = name
        fitted = any(known in case["device"] for known in NEUSIGHT_FITTED)
        for tool, column in tools.items():
            answers[tool].append(row(name, number(case[column]) if case[column] else "", "model",
                                     f"{case['device']} ms", number(case["measured_ms"]), source,
                                     withheld="" if fitted or tool == "roofline" else "hardware"))
    for tool, rows in answers.items():
        write(folder, tool, rows)
    result = []
    for scored in ours.rows("steps", "--data", str(data / "neusight/end_to_end.csv")):
        name = names.get(int(scored["row"]))
        if name:
            result.append(row(name, number(scored["predicted_ms"]), "model", f"{scored['device']} ms",
                              number(scored["measured_ms"]), "foretoken validate steps; rules were written with these rows known",
                              low=number(scored["low_ms"]), high=number(scored["high_ms"])))
    return result


def tpu(folder, data, ours):
    """Programs on a TPU v3: cycles measured, and those of four simulators (PyTorchSim's artifact)."""
    source = "PyTorchSim artifact fe04c9a, measured TPU v3 and other simulators"
    tools = {"timeloop": "timeloop", "maestro": "maestro", "scalesim": "scalesim_v3", "mnpusim": "mnpusim"}
    answers = {tool: [] for tool in tools}
    with open(data / "tpuv3/workloads.csv") as file:
        table = {case["workload"]: case for case in csv.DictReader(file)}

    def place(workload):
        is_model = workload.startswith(("resnet", "bert"))
        return ("model", "TPU v3 models, cycles") if is_model else ("kernel", "TPU v3 kernels, cycles")

    for workload, case in table.items():
        for tool, column in tools.items():
            answers[tool].append(row(f"tpuv3/{workload}", case[column], *place(workload), case["tpuv3_cycles"], source))
    for tool, rows in answers.items():
        write(folder, tool, rows)
    return [row(f"tpuv3/{scored['case']}", number(scored["predicted"]), *place(scored["case"]), scored["expected"],
                "foretoken validate accel --data workloads.csv; three constants fitted on these rows")
            for scored in ours.rows("accel", "--data", str(data / "tpuv3/workloads.csv"))]


def pim(folder, data, ours):
    """PrIM kernels on UPMEM, with uPIMulator's own figures."""
    theirs, result = [], []
    with open(data / "upmem/prim_upmem.csv") as file:
        for at, case in enumerate(csv.DictReader(file)):
            if at % 4 or float(case["hw_kernel_ms"]) <= 0:  # a quarter is enough to rank by
                continue
            name = "/".join(["upmem", case["benchmark"], f"{case['num_dpus']} dpus", case["data_prep_param"]])
            place = ("kernel", f"UPMEM {case['benchmark']} ms", number(case["hw_kernel_ms"]))
            theirs.append(row(name, number(case["upimulator_kernel_ms"]), *place, "VIA-Research/uPIMulator 870d916"))
            try:
                answer = ours.json("pim", "--program", case["benchmark"], "--size", case["data_prep_param"], "--dpus",
                                   case["num_dpus"])["kernel_seconds"]
            except subprocess.CalledProcessError:
                continue
            bounds = {key: number(1e3 * answer[key]) for key in ("low", "high")}
            result.append(row(name, number(1e3 * answer["value"]), *place,
                              "foretoken pim; instructions of each benchmark fitted on this table", **bounds))
    write(folder, "upimulator", theirs)
    return result


def collectives(folder, data, ours):
    """All-reduce on eight H100s that Vidur measured. ASTRA-sim's times come from our copy of its arithmetic, which gives
    the nanoseconds of its own runs (data of `validate collectives`); its inputs are those of its HGX-H100 example."""
    theirs, result = [], []
    sizes = {2 ** power * 1024 for power in range(1, 17)}
    for scored in ours.rows("collectives", "--data", str(data / "comm/vidur_collectives.csv.gz")):
        size = int(scored["size"])
        nearest = min(sizes, key=lambda known: abs(known - size))
        if scored["system"] != "h100_dgx" or scored["operation"] != "all_reduce" or scored["ranks"] != "8":
            continue
        if abs(size - nearest) > 0.001 * nearest and size != 2048:
            continue
        name = f"vidur/h100_dgx/all_reduce/8/{size}"
        place = ("kernel", "all-reduce on 8 H100 us", number(scored["measured_us"]))
        if any(known["scenario"] == name for known in theirs):
            continue
        answer = ours.json("collective", "--astra-compatible", *HGX_H100, "--bytes", str(size))
        theirs.append(row(name, number(answer["rows"][0]["nanoseconds"] / 1000), *place,
                          "ASTRA-sim 518bd51, analytical, inputs of its HGX-H100 example", size=size))
        result.append(row(name, number(scored["predicted_us"]), *place, "foretoken validate collectives", size=size,
                          withheld="workload", low=number(scored["low_us"]), high=number(scored["high_us"])))
    write(folder, "astra-sim", theirs)
    return result


def steps(ours):
    """Steps of six models that no fit has seen, on an H200 that we measured, with the sum of their kernels."""
    result = []
    for scored in ours.rows("steps", "--data", "data/measured/h200_sxm/steps.csv", "--models", UNSEEN_MODELS):
        if scored["stack"] != "torch-graph" or scored["phase"] not in ("prefill", "decode"):
            continue
        name = "/".join(["h200", scored["model"], scored["stack"], scored["phase"], f"b{scored['batch']}",
                         f"s{scored['input_len']}", f"c{scored['context_len']}", scored["row"]])
        source = "foretoken validate steps --data data/measured/h200_sxm/steps.csv"
        result.append(row(name, number(scored["predicted_ms"]), "model", f"H200 {scored['phase']} ms",
                          number(scored["measured_ms"]), source, withheld="model",
                          low=number(scored["low_ms"]), high=number(scored["high_ms"])))
        if scored["measured_kernel_ms"]:
            result.append(row(f"{name}/kernels", number(scored["predicted_kernel_ms"]), "kernel",
                              f"H200 kernels of a {scored['phase']} step ms", number(scored["measured_kernel_ms"]), source,
                              part_of=name))
    return result


def published(library):
    """Single rows of docs/accuracy.md that no fit has seen, as data/accuracy/published.json holds them."""
    result = []
    document = json.loads((library / "accuracy/published.json").read_text())
    for entry in document["sets"]:
        for group in entry["groups"]:
            if group["seen"] not in ("left out of the fit", "unseen"):
                continue
            if entry["layer"] in ("kernels", "attention") and "whole generation" in entry["source"]:
                level, withheld = "kernel", "hardware"
            elif entry["layer"] == "training":
                level, withheld = "system", "workload"
            else:
                continue
            points = group["points"][::8] if level == "kernel" else group["points"][::4]
            for at, (measured, predicted) in enumerate(points):
                result.append(row(f"published/{group['group']}/{at}", number(predicted), level,
                                  f"{group['group']} {entry['unit']}", number(measured),
                                  f"data/accuracy/published.json: {entry['source'][:60]}", withheld=withheld))
    return result


def serving_runs(folder, data, ours, theirs):
    """Two replays of 300 requests against vLLM: means and percentiles of LLMServingSim's own validation, and ours."""
    result, other = [], []
    for run in ("RTX4090", "RTXPRO6000"):
        rows = ours.rows("serving", "--run", str(data / f"serving/vllm_runs/{run}_Llama-3.1-8B"))
        for metric, label in (("ttft_ms", "TTFT"), ("tpot_ms", "TPOT"), ("e2e_ms", "Latency")):
            own = [r for r in rows if r["metric"] == metric]
            for statistic, pick in (("Mean", lambda v: sum(v) / len(v)), ("Median", lambda v: quantile(v, 0.5)),
                                    ("P99", lambda v: quantile(v, 0.99))):
                values = {key: pick([float(r[key]) for r in own]) for key in ("measured", "predicted", "low", "high")}
                name = f"vllm/{run}/Llama-3.1-8B/{label} {statistic}"
                place = ("system", f"{run} {label} ms")
                result.append(row(name, number(values["predicted"]), *place, number(values["measured"]),
                                  "foretoken validate serving --run; rules were written with this run known",
                                  low=number(values["low"]), high=number(values["high"])))
                if theirs:
                    summary = (theirs / f"bench/examples/{run}/Llama-3.1-8B/validation/summary.txt").read_text()
                    found = re.search(rf"^{label} {statistic} +([0-9.]+) +([0-9.]+)", summary, re.M)
                    other.append(row(name, found[2], *place, found[1],
                                     "casys-kaist/LLMServingSim 5daddb2, bench/examples, with operators profiled on this GPU"))
    if theirs:
        write(folder, "llmservingsim", other)
    return result


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def calculon(folder, program):
    """Calculon's own validation (`bin/calculon llm-validation`): four models with and without full recomputation."""
    done = subprocess.run(["python3", "bin/calculon", "llm-validation"], cwd=program, check=True, capture_output=True,
                          text=True)
    rows = []
    table = done.stdout[done.stdout.rindex("Model,|,Profile"):]
    source = "calculon-ai/calculon caa4b11, bin/calculon llm-validation"
    for line in table.splitlines()[1:5]:
        cells = line.replace("|,", "").split(",")
        model, full, predicted_full, _, _, _, predicted = cells[:7]
        rows.append({"scenario": CALCULON_CARDS[model], "value": predicted, "source": source})
        rows.append(row(f"actrecomp/{model}/full", predicted_full, "system", "arXiv 2205.05198 table 5, full, s", full,
                        source))
    write(folder, "calculon", rows)


def megatron_full(data, ours):
    """The runs with full recomputation of the same table, for comparison with Calculon."""
    names = {"Megatron-GPT-22B": "megatron-22B", "GPT-3-175B": "gpt3-175B", "MT-NLG-530B": "turing-530B",
             "Megatron-GPT-1T": "megatron-1T"}
    result = []
    for scored in ours.rows("training", "--data", str(data / "training/runs.csv.gz"), "--sources", "actrecomp-table5"):
        model = next((ours_ for name, ours_ in names.items() if name.split("-")[-1] in scored["model"]), None)
        if model and float(scored["measured_s"]) in (1.42, 18.13, 49.05, 94.42):
            result.append(row(f"actrecomp/{model}/full", number(scored["predicted_s"]), "system",
                              "arXiv 2205.05198 table 5, full, s", scored["measured_s"],
                              "foretoken validate training; the stack was fitted on this table",
                              low=number(scored["low"]), high=number(scored["high"])))
    return result


def newer_releases(data, library, ours):
    """Megatron-Bridge from 26.06 on, by the stack for the releases before, fitted to no run of a newer one."""
    with gzip.open(data / "training/runs.csv.gz", "rt") as file:
        table = csv.DictReader(file)
        columns, runs = table.fieldnames, list(table)
    parts = {"older": [], "newer": []}
    for run in runs:
        release = re.match(r"release ([0-9]+\.[0-9]+)", run["notes"])
        newer = run["source"] == "megatron-bridge" and release[1] >= FIRST_WITHHELD_RELEASE
        parts["newer" if newer else "older"].append(run)
    for name, part in parts.items():
        with open(ours.scratch / f"{name}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(part)
    for entry in list(library.iterdir()) + [entry for entry in (library / "training").iterdir() if entry.is_file()]:
        if entry.name != "training":
            place = ours.scratch / "library" / entry.relative_to(library)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(entry.resolve())
    subprocess.run([ours.program, "fit", "training", "--data", ours.scratch / "older.csv", "--out",
                    ours.scratch / "library/training/stacks"], check=True, stdout=subprocess.DEVNULL)
    refitted = Foretoken(ours.program, ours.scratch, {**os.environ, "FORETOKEN_LIBRARY": ours.scratch / "library"})
    releases = {run["id"]: run["notes"].split(";")[0].removeprefix("release ") for run in parts["newer"]}
    return [row(f"megatron-bridge/{releases[scored['id']]}/{scored['id']}", number(scored["predicted_s"]), "system",
                "Megatron-Bridge s", scored["measured_s"],
                f"foretoken validate training with constants fitted to runs before {FIRST_WITHHELD_RELEASE}; rules were "
                "written with these rows known", withheld="time", low=number(scored["low"]), high=number(scored["high"]))
            for scored in refitted.rows("training", "--data", str(ours.scratch / "newer.csv"), "--stack",
                                        "megatron-bridge-26.04")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--library", default="data", type=pathlib.Path)
    parser.add_argument("--calculon", type=pathlib.Path)
    parser.add_argument("--llmservingsim", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        ours = Foretoken(options.foretoken, pathlib.Path(scratch))
        rows = neusight(options.out, options.data, ours)
        rows += tpu(options.out, options.data, ours)
        rows += pim(options.out, options.data, ours)
        rows += collectives(options.out, options.data, ours)
        rows += serving_runs(options.out, options.data, ours, options.llmservingsim)
        rows += steps(ours) + megatron_full(options.data, ours) + published(options.library)
        rows += newer_releases(options.data, options.library, ours)
        write(options.out, "foretoken", rows)
    if options.calculon:
        calculon(options.out, options.calculon)


if __name__ == "__main__":
    main()
