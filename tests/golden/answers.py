#!/usr/bin/env python3
"""Records the JSON answers of many commands, and compares two recordings number by number.

  answers.py record PROGRAM FOLDER [--every N | --quick-of OTHER]
                                     runs every command of commands.txt, every N-th, or those that took under 3 seconds in the
                                     recording OTHER (for emulated programs), with --json and keeps what it printed
  answers.py compare BEFORE AFTER    lists every value that differs by more than one part in 10^9; exit status 1 if any
  answers.py same ONE OTHER          lists every value of ONE that differs at all in OTHER, as programs of two architectures must not

Use it around a change that must not move any answer. Lines of commands.txt that name $FORETOKEN_DATA are left out where
that variable is not set.
"""
import concurrent.futures
import json
import math
import os
import pathlib
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOLERANCE = 1e-9
QUICK_SECONDS = 3
# What says how long the program itself took.
CLOCK_KEYS = {"seconds_per_1000_rows", "wall_seconds", "search_seconds", "elapsed_s", "simulated_per_wall_second"}


def commands():
    kept = []
    for line in (HERE / "commands.txt").read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if "$FORETOKEN_DATA" in line and "FORETOKEN_DATA" not in os.environ:
            continue
        kept.append(line)
    return kept


def run(program, line):
    argv = [program] + shlex.split(os.path.expandvars(line)) + ["--json"]
    start = time.monotonic()
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=600)
    return {"command": line, "status": done.returncode, "out": done.stdout, "err": done.stderr,
            "took_seconds": time.monotonic() - start}


def recording(folder):
    answers = [json.loads(file.read_text()) for file in sorted(pathlib.Path(folder).glob("*.json"))]
    return {answer["command"]: answer for answer in answers}


def chosen(every=None, quick_of=None):
    if quick_of:
        return [line for line, answer in recording(quick_of).items() if answer["took_seconds"] < QUICK_SECONDS]
    return commands()[::int(every or 1)]


def record(program, folder, **which):
    program = os.path.abspath(program)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = chosen(**which)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, answer in enumerate(pool.map(lambda line: run(program, line), lines)):
            (folder / f"{number:03}.json").write_text(json.dumps(answer, indent=1))
            print(f"{number + 1}/{len(lines)} status {answer['status']}: {answer['command']}", flush=True)


def parsed(answer):
    try:
        return json.loads(answer["out"])
    except ValueError:
        return answer["out"]


def differences(before, after, tolerance, path=""):
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if key in CLOCK_KEYS:
                continue
            if key not in before or key not in after:
                yield f"{path}.{key}", before.get(key, "(absent)"), after.get(key, "(absent)")
            else:
                yield from differences(before[key], after[key], tolerance, f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after)):
            yield from differences(one, other, tolerance, f"{path}[{index}]")
    elif isinstance(before, float) or isinstance(after, float):
        is_number = all(isinstance(v, (int, float)) for v in (before, after))
        if not is_number or not math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance and 1e-300):
            yield path, before, after
    elif before != after:
        yield path, before, after


def compare(before_folder, after_folder, tolerance):
    answers = [recording(before_folder), recording(after_folder)]
    moved = 0
    for command in answers[0]:
        if command not in answers[1]:
            print(f"foretoken {command}\n  no longer asked")
            moved += 1
            continue
        before, after = answers[0][command], answers[1][command]
        found = list(differences(parsed(before), parsed(after), tolerance))
        if before["status"] != after["status"]:
            found.insert(0, ("exit status", before["status"], after["status"]))
        if not found:
            continue
        moved += 1
        print(f"foretoken {command}")
        for path, one, other in found[:8]:
            print(f"  {path}: {str(one)[:200]} -> {str(other)[:200]}")
        if len(found) > 8:
            print(f"  and {len(found) - 8} more")
    print(f"{len(answers[0])} commands, {moved} moved")
    return 1 if moved or not answers[0] else 0


def main(argv):
    if len(argv) == 4 and argv[1] == "record":
        return record(argv[2], argv[3]) or 0
    if len(argv) == 6 and argv[1] == "record" and argv[4] in ("--every", "--quick-of"):
        return record(argv[2], argv[3], **{argv[4][2:].replace("-", "_"): argv[5]}) or 0
    if len(argv) == 4 and argv[1] in ("compare", "same"):
        return compare(argv[2], argv[3], TOLERANCE if argv[1] == "compare" else 0)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
