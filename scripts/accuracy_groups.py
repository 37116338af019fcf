#!/usr/bin/env python3
"""Rows that `foretoken validate ... --out FILE` wrote -> data/accuracy/published.json, which the page shows.

    scripts/accuracy_groups.py FOLDER > data/accuracy/published.json

FOLDER holds the files named in SOURCES. Only summaries of groups are kept (geometric means, errors), never rows;
groups of fewer than three rows are left out.
"""
import csv
import json
import math
import pathlib
import statistics
import sys

FEWEST_ROWS = 3
UNSEEN_MODELS = {"meta-llama/Llama-3.2-3B", "Qwen/Qwen2.5-7B", "mistralai/Mistral-7B-v0.3", "openai-community/gpt2-xl",
                 "google/gemma-2-2b", "microsoft/Phi-4-mini-instruct"}


def short(name):
    return name.split("/")[-1]


# file: layer, quantity, unit, columns of measured, predicted, low, high, name of a row's group, what a fit has seen, source.
SOURCES = {
    "steps_h200.csv": dict(
        layer="steps", quantity="time of a step", unit="ms", columns=("measured_ms", "predicted_ms", "low_ms", "high_ms"),
        group=lambda row: f"{short(row['model'])}, {row['stack']} {row['phase']}, H200",
        seen=lambda row: "unseen" if row["model"] in UNSEEN_MODELS else "rules written in sight",
        source="our own H200 (data/measured/h200_sxm)"),
    "steps_neusight.csv": dict(
        layer="steps", quantity="time of a step", unit="ms", columns=("measured_ms", "predicted_ms", "low_ms", "high_ms"),
        group=lambda row: f"{row['phase']}, {row['device']}", seen=lambda row: "rules written in sight",
        source="NeuSight, whole models (github.com/sitar-lab/NeuSight)"),
    "training.csv": dict(
        layer="training", quantity="time of an optimizer step", unit="s", columns=("measured_s", "predicted_s", "low", "high"),
        group=lambda row: f"{row['source']}, {row['gpu']}", seen=lambda row: "fitted",
        source="published training runs (docs/accuracy.md, Training)"),
    "serving.csv": dict(
        layer="serving", quantity="operating point", unit="", columns=("measured", "predicted", "low", "high"),
        group=lambda row: f"{row['metric']}, {row['engine']}, {row['gpu']}", seen=lambda row: "some constants chosen on them",
        source="published operating points (docs/accuracy.md, Serving)"),
    "collectives_vidur.csv": dict(
        layer="collectives", quantity="time of a collective", unit="us",
        columns=("measured_us", "predicted_us", "low_us", "high_us"),
        group=lambda row: f"{row['operation']}, {row['ranks']} ranks, {row['system']}", seen=lambda row: "unseen",
        source="Vidur (github.com/microsoft/vidur)"),
    "kernels_neusight.csv": dict(
        layer="kernels", quantity="time of a kernel", unit="us", columns=("measured_us", "predicted_us", "low_us", "high_us"),
        group=lambda row: f"{row['family']}, {row['device']}", seen=lambda row: "fitted",
        source="NeuSight, operators (github.com/sitar-lab/NeuSight)"),
    "kernels_aic.csv": dict(
        layer="kernels", quantity="time of a kernel", unit="us", columns=("measured_us", "predicted_us", "low_us", "high_us"),
        group=lambda row: f"{row['family']}, {row['device']}", seen=lambda row: "fitted",
        source="ai-dynamo/aiconfigurator, commit 095f58a"),
    "accel.csv": dict(
        layer="accelerators", quantity="figure of a chip", unit="", columns=("expected", "predicted", None, None),
        group=lambda row: f"{row['file']}, {row['figure']}", seen=lambda row: "unseen",
        source="published figures of chips (data/accelerators/published)"),
}


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan


def rows_of(path, about):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            measured, predicted, low, high = (number(row.get(column)) if column else math.nan for column in about["columns"])
            if measured > 0 and predicted > 0:
                yield (about["group"](row), about["seen"](row)), (measured, predicted, low, high)


def summary(about, name, seen, rows):
    def middle(index):
        return float(f"{math.exp(statistics.fmean(math.log(row[index]) for row in rows)):.6g}")

    with_interval = [row for row in rows if not math.isnan(row[2])]
    result = {"layer": about["layer"], "group": name, "quantity": about["quantity"], "unit": about["unit"], "count": len(rows),
              "measured": middle(0), "predicted": middle(1),
              "mape": round(100 * statistics.fmean(abs(row[1] / row[0] - 1) for row in rows), 2),
              "seen": seen, "source": about["source"]}
    if with_interval:
        inside = sum(row[2] <= row[0] <= row[3] for row in with_interval)
        result["within_interval"] = round(100 * inside / len(with_interval), 1)
    return result


def main():
    folder = pathlib.Path(sys.argv[1])
    groups = []
    for file, about in SOURCES.items():
        if not (folder / file).exists():
            continue
        found = {}
        for key, row in rows_of(folder / file, about):
            found.setdefault(key, []).append(row)
        groups += [summary(about, name, seen, rows) for (name, seen), rows in sorted(found.items()) if len(rows) >= FEWEST_ROWS]
    note = ("Each point is a group of measurements: the geometric means of what was measured and what is predicted for it. "
            "The mean error is that of single rows. The column on fits says how much the constants had seen of the rows; "
            "docs/accuracy.md has the figures on rows that were left out.")
    text = ",\n".join("  " + json.dumps(group) for group in groups)
    print('{"note": %s,\n "groups": [\n%s\n]}' % (json.dumps(note), text))


if __name__ == "__main__":
    main()
