#!/usr/bin/env python3
"""Predicted against measured, from the program's own validation -> data/accuracy/published.json, which the page shows.

    scripts/accuracy_groups.py --commands FOLDER | sh      # writes the rows there; $FORETOKEN_DATA names the measurements
    scripts/accuracy_groups.py FOLDER > data/accuracy/published.json
    scripts/accuracy_groups.py FOLDER EARLIER.json > ...    # sets whose rows are not in FOLDER stay as they were

Only rows that no fit has seen are used. Of a group stay its errors, a few pairs of measured and predicted, evenly spaced by
size, and its worst rows; groups of fewer than three rows are left out, files that are not there are named on standard error.
"""
import csv
import json
import math
import pathlib
import shlex
import statistics
import sys

FEWEST_ROWS = 3
MOST_POINTS = 24
WORST_ROWS = 3

UNSEEN = "unseen"                        # measured by others, and nothing was made in its sight
LEFT_OUT = "left out of the fit"         # predicted by a fit that has not seen it
IN_SIGHT = "rules written in sight"      # no constant was fitted, but rules were written while looking at it
CHOSEN = "some constants chosen on it"   # no fit, but a few constants by hand

UNSEEN_MODELS = {"meta-llama/Llama-3.2-3B", "Qwen/Qwen2.5-7B", "mistralai/Mistral-7B-v0.3", "openai-community/gpt2-xl",
                 "google/gemma-2-2b", "microsoft/Phi-4-mini-instruct"}
FAMILIES = "gemm,attention_prefill,attention_decode,moe,mla_prefill,mla_decode,attention_encoder"
WITHOUT_ENCODER = {"a100_sxm"}  # nobody measured it there
AIC = "ai-dynamo/aiconfigurator, commit 095f58a"
LLMSERVINGSIM = "LLMServingSim, commit 5daddb2"


def short(name):
    return name.split("/")[-1]


def file_and_row(row):
    return f"{short(row['file'])}, row {row['row']}"


def step_of(row):
    return f"{short(row['model'])}, {row['batch']} x {row['input_len']}, context {row['context_len']}"


def kernel_set(file, command, source, group, seen, layer="kernels", keep=None):
    return dict(file=file, command=command, layer=layer, quantity="time of a kernel", unit="us",
                columns=("measured_us", "predicted_us", "low_us", "high_us"), group=group, seen=lambda row: seen,
                row=file_and_row, source=source, keep=keep)


# A device without any row of its generation in the fit: that of H100 serves H200 as well.
def withheld_sets(device, fit_without):
    measured = FAMILIES.removesuffix(",attention_encoder") if device in WITHOUT_ENCODER else FAMILIES
    command = (f"foretoken fit kernels --data $FORETOKEN_DATA/kernels --families {FAMILIES} --without {fit_without} --cross-only "
               f"--source 'generation withheld' --date 2026-11-16 --out FOLDER/without_{fit_without} && "
               f"foretoken validate kernels --data $FORETOKEN_DATA/kernels --devices {device} --families {measured} --tier cross "
               f"--calibration FOLDER/without_{fit_without} --out FOLDER/withheld_{device}.csv")
    for layer, is_attention in (("kernels", False), ("attention", True)):
        yield kernel_set(f"withheld_{device}.csv", command, f"{AIC}; the whole generation withheld from the fit",
                         lambda row: f"{row['family']}, {row['device']}", LEFT_OUT, layer,
                         keep=lambda row, wanted=is_attention: row["family"].startswith(("attention", "mla")) == wanted)


# One MLPerf row spells out a build of its own.
def engine_of(row):
    return row["engine"].split(",")[0]


def serving_set(file, command, group, seen, source):
    return dict(file=file, command=command, layer="serving", quantity="operating point", unit="", seen=lambda row: seen,
                columns=("measured", "predicted", "low", "high"), group=group, source=source,
                row=lambda row: f"case {row['case_id']}, {short(row['model'])}")


SETS = [
    *(one for device, fit in (("a100_sxm", "a100_sxm"), ("l40s", "l40s"), ("h100_sxm", "h100_sxm"), ("h200_sxm", "h100_sxm"),
                              ("rtx_pro_6000_server", "rtx_pro_6000_server"), ("b200_sxm", "b200_sxm"))
      for one in withheld_sets(device, fit)),
    kernel_set("kernels_traced.csv",
               "foretoken validate kernels --data $FORETOKEN_DATA/neusight/end_to_end_ops.csv.gz --group-by op "
               "--out FOLDER/kernels_traced.csv",
               "NeuSight, nodes of traced models (github.com/sitar-lab/NeuSight)",
               lambda row: f"{row['family']}, {row['device']}, inside a model", UNSEEN),
    kernel_set("kernels_rtx4090.csv",
               "foretoken validate kernels --data $FORETOKEN_DATA/llmservingsim/v1 --devices rtx_4090 --families gemm "
               "--out FOLDER/kernels_rtx4090.csv",
               f"{LLMSERVINGSIM}, projections inside vLLM 0.19", lambda row: "gemm, RTX 4090, inside vLLM", UNSEEN),
    dict(file="collectives_vidur.csv", layer="collectives", quantity="time of a collective", unit="us",
         command="foretoken validate collectives --data $FORETOKEN_DATA/comm/vidur_collectives.csv.gz "
                 "--out FOLDER/collectives_vidur.csv",
         columns=("measured_us", "predicted_us", "low_us", "high_us"), seen=lambda row: UNSEEN,
         group=lambda row: f"{row['operation']}, {row['ranks']} ranks, {row['system']}",
         row=lambda row: f"{row['size']} bytes", source="Vidur (github.com/microsoft/vidur)"),
    dict(file="steps_h200.csv", layer="steps", quantity="time of a step", unit="ms",
         command="foretoken validate steps --data data/measured/h200_sxm/steps.csv --out FOLDER/steps_h200.csv",
         columns=("measured_ms", "predicted_ms", "low_ms", "high_ms"),
         group=lambda row: f"{short(row['model'])}, {row['stack']} {row['phase']}, H200",
         seen=lambda row: UNSEEN if row["model"] in UNSEEN_MODELS else IN_SIGHT, row=step_of,
         source="our own H200 (data/measured/h200_sxm)"),
    dict(file="steps_neusight.csv", layer="steps", quantity="time of a step", unit="ms",
         command="foretoken validate steps --data $FORETOKEN_DATA/neusight/end_to_end.csv --out FOLDER/steps_neusight.csv",
         columns=("measured_ms", "predicted_ms", "low_ms", "high_ms"), group=lambda row: f"{row['phase']}, {row['device']}",
         seen=lambda row: IN_SIGHT, row=step_of, source="NeuSight, whole models (github.com/sitar-lab/NeuSight)"),
    dict(file="training.csv", layer="training", quantity="time of an optimizer step", unit="s",
         command="foretoken fit training --data $FORETOKEN_DATA/training/runs.csv.gz --out FOLDER/stacks "
                 "--rows FOLDER/training.csv",
         columns=("measured_s", "unseen_s", None, None), group=lambda row: row["source"], seen=lambda row: LEFT_OUT,
         row=lambda row: row["id"], source="published training runs, five folds by configuration (docs/accuracy.md)"),
    *(serving_set(f"serving_{kind}.csv",
                  f"foretoken validate serving --data $FORETOKEN_DATA/serving/cases.csv.gz --kinds {kind} --tiers {tiers} "
                  f"--out FOLDER/serving_{kind}.csv",
                  lambda row, kind=kind: f"{row['metric']}, {kind}, {engine_of(row)}, {row['device']}", CHOSEN,
                  "published operating points (docs/accuracy.md, Serving)") for kind, tiers in (("dense", "B,C"), ("moe", "B"))),
    *(serving_set(f"run_{gpu}.csv",
                  f"foretoken validate serving --run $FORETOKEN_DATA/serving/vllm_runs/{gpu}_Llama-3.1-8B --own-blocks "
                  f"--out FOLDER/run_{gpu}.csv",
                  lambda row, gpu=gpu: f"{row['metric']} of each request, vLLM 0.19, {gpu}", IN_SIGHT,
                  f"{LLMSERVINGSIM}, one run of 300 requests") for gpu in ("RTX4090", "RTXPRO6000")),
    dict(file="edge_models.csv", layer="edge", quantity="time of a network", unit="ms",
         command="foretoken validate edge --data $FORETOKEN_DATA/edge/host_ort_models.csv --out FOLDER/edge_models.csv",
         columns=("measured_ms", "predicted_ms", "low_ms", "high_ms"), group=lambda row: "whole networks, Neoverse V1, ONNX Runtime",
         seen=lambda row: IN_SIGHT, row=lambda row: row["kind"], source="networks measured on an Arm server (docs/accuracy.md)"),
    dict(file="accel.csv", layer="accelerators", quantity="figure of a chip", unit="",
         command="foretoken validate accel --out FOLDER/accel.csv", columns=("expected", "predicted", None, None),
         group=lambda row: f"{row['file']}, {row['figure']}",
         seen=lambda row: LEFT_OUT if row["file"] == "tpu_v1" else IN_SIGHT, row=lambda row: row["case"],
         source="published figures of chips (data/accelerators/published)"),
]


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan


def rounded(value):
    return float(f"{value:.4g}")


# By group and what was seen of it: rows of measured, predicted, low, high and name.
def grouped_rows(path, about):
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if about.get("keep") and not about["keep"](row):
                continue
            measured, predicted, low, high = (number(row.get(column)) if column else math.nan for column in about["columns"])
            if measured > 0 and predicted > 0:
                found.setdefault((about["group"](row), about["seen"](row)), []).append(
                    (measured, predicted, low, high, about["row"](row)))
    return found


def evenly(rows, count):
    if len(rows) <= count:
        return rows
    return [rows[round(i * (len(rows) - 1) / (count - 1))] for i in range(count)]


def summary(name, seen, rows):
    def error(row):
        return abs(row[1] / row[0] - 1)

    rows = sorted(rows)
    errors = [error(row) for row in rows]
    result = {"group": name, "count": len(rows), "mape": round(100 * statistics.fmean(errors), 2),
              "median": round(100 * statistics.median(errors), 2), "seen": seen}
    with_interval = [row for row in rows if not math.isnan(row[2])]
    if with_interval:
        inside = sum(row[2] <= row[0] <= row[3] for row in with_interval)
        result["within_interval"] = round(100 * inside / len(with_interval), 1)
    result["points"] = [[rounded(row[0]), rounded(row[1])] for row in evenly(rows, MOST_POINTS)]
    result["worst"] = [{"row": row[4], "measured": rounded(row[0]), "predicted": rounded(row[1])}
                       for row in sorted(rows, key=lambda row: (-error(row), row))[:WORST_ROWS]]
    return result


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--commands":
        print("\n".join(dict.fromkeys(about["command"].replace("FOLDER", shlex.quote(sys.argv[2])) for about in SETS)))
        return
    folder = pathlib.Path(sys.argv[1])
    earlier = json.loads(pathlib.Path(sys.argv[2]).read_text())["sets"] if len(sys.argv) == 3 else []
    sets = []
    for about in SETS:
        if not (folder / about["file"]).exists():
            kept = [one for one in earlier if one["layer"] == about["layer"] and one["command"] == about["command"]]
            print(f"{'kept' if kept else 'left out'}: {about['file']} is not there", file=sys.stderr)
            sets += kept
            continue
        groups = [summary(name, seen, rows) for (name, seen), rows in sorted(grouped_rows(folder / about["file"], about).items())
                  if len(rows) >= FEWEST_ROWS]
        if groups:
            sets.append({**{key: about[key] for key in ("layer", "quantity", "unit", "source", "command")}, "groups": groups})
    note = ("What the program's own validation says about measurements that no fit has seen: predicted against measured, by group. "
            "Errors cover all rows of a group; the plot shows a few of them, evenly spaced by size.")
    text = ",\n".join("  " + json.dumps(one, separators=(",", ":")).replace('{"group"', '\n   {"group"') for one in sets)
    print('{"note": %s,\n "sets": [\n%s\n]}' % (json.dumps(note), text))


if __name__ == "__main__":
    main()
