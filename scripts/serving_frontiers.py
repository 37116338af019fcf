#!/usr/bin/env python3
"""Frontiers of tokens/s/GPU against tokens/s/user: do measured points lie inside the predicted band?

    foretoken validate serving --data cases.csv.gz --models NAME --out rows.csv
    scripts/serving_frontiers.py cases.csv.gz rows.csv [more.csv ...]

A frontier is one model on one GPU with one engine, weight format and pair of lengths, over all layouts and concurrencies that
were measured in a closed loop. Speed of a user is 1000 / TPOT; output tokens/s follow from TTFT, TPOT and the concurrency (Little's
law), for measured and predicted values alike. The band lies between the frontiers of the slow and the fast ends of all predictions,
interpolated in log space. Counted are measured points that are on the measured frontier.
"""
import collections
import csv
import gzip
import math
import statistics
import sys

SERIES = ("model", "gpu", "engine", "weight_dtype", "isl", "osl")
MEAN_SHARE = 0.9     # lengths are drawn between 0.8 and 1.0 of the nominal ones
FEWEST_POINTS = 4    # of a series, at different speeds


def opened(path):
    return gzip.open(path, "rt", encoding="utf-8", newline="") if path.endswith(".gz") else open(path, encoding="utf-8", newline="")


def point(case, ttft_ms, tpot_ms):
    """tokens/s/user and output tokens/s/GPU."""
    tokens = MEAN_SHARE * float(case["osl"])
    seconds = (ttft_ms + (tokens - 1) * tpot_ms) / 1e3
    return 1e3 / tpot_ms, float(case["concurrency"]) * tokens / seconds / float(case["num_gpus"])


def frontier(points):
    """Those that no other beats in both, fastest for a user last."""
    kept, best = [], 0
    for x, y in sorted(points, reverse=True):
        if y > best:
            kept.append((x, y))
            best = y
    return kept[::-1]


def height(curve, x):
    """Of a frontier at this speed; 0 where nothing is as fast."""
    if x > curve[-1][0]:
        return 0
    if x <= curve[0][0]:
        return curve[0][1]
    for (x0, y0), (x1, y1) in zip(curve, curve[1:]):
        if x <= x1:
            share = math.log(x / x0) / math.log(x1 / x0)
            return math.exp((1 - share) * math.log(y0) + share * math.log(y1))
    raise AssertionError("x lies on the curve")


def read_series(cases_file, row_files):
    with opened(cases_file) as file:
        cases = {row["case_id"]: row for row in csv.DictReader(file)}
    values = collections.defaultdict(dict)
    for name in row_files:
        with opened(name) as file:
            for row in csv.DictReader(file):
                values[row["case_id"]][row["metric"]] = {key: float(row[key]) for key in ("measured", "predicted", "low", "high")}
    series = collections.defaultdict(list)
    for case_id, metrics in values.items():
        case = cases[case_id]
        if case["mode"] != "agg" or not case["concurrency"] or not {"ttft_ms", "tpot_ms"} <= metrics.keys():
            continue
        of = lambda key: point(case, metrics["ttft_ms"][key], metrics["tpot_ms"][key])
        series[tuple(case[key] for key in SERIES)].append(
            {"measured": of("measured"), "predicted": of("predicted"), "fast": of("low"), "slow": of("high")})
    return {key: points for key, points in series.items() if len({p["measured"][0] for p in points}) >= FEWEST_POINTS}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    totals = collections.defaultdict(lambda: [0, 0, 0, [], []])
    for key, points in sorted(read_series(sys.argv[1], sys.argv[2:]).items()):
        slow, fast = (frontier([p[end] for p in points]) for end in ("slow", "fast"))
        middle = frontier([p["predicted"] for p in points])
        total = totals[key[0]]
        total[0] += 1
        for x, y in frontier([p["measured"] for p in points]):
            total[1] += 1
            inside = height(slow, x) <= y <= height(fast, x)
            total[2] += inside
            if not inside:
                print(f"outside: {' '.join(key)}: {x:.1f} tok/s/user, {y:.0f} tok/s/GPU; band {height(slow, x):.0f} to {height(fast, x):.0f}")
            if height(middle, x) > 0:
                total[3].append(abs(height(middle, x) / y - 1))
            if height(slow, x) > 0:
                total[4].append(height(fast, x) / height(slow, x))
    print("model,frontiers,points,inside,percent,median_error_percent,median_top_over_bottom")
    rows = sorted(totals.items())
    for name, (frontiers, count, inside, errors, widths) in rows:
        print(f"{name},{frontiers},{count},{inside},{100 * inside / count:.1f},{100 * statistics.median(errors):.1f},"
              f"{statistics.median(widths):.2f}")
    frontiers, count, inside = (sum(total[i] for _, total in rows) for i in (0, 1, 2))
    print(f"all,{frontiers},{count},{inside},{100 * inside / count:.1f},,")


if __name__ == "__main__":
    main()
