#!/usr/bin/env python3
"""CPU seconds of every question in docs/questions.md against the budget that stands behind it.

    scripts/question_times.py [PROGRAM]        # default: build/foretoken; in the folder of the sources

Prints a line for each question. The exit status is 1 if one of them takes longer than its budget: user and system time of the
process, which other work on the machine changes little.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

QUESTION = re.compile(r"^(\d+)\. \*(.+)\* \((\d+) s\)$")


def questions(text):
    """Number, question, budget in seconds and command."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if found := QUESTION.match(line):
            yield int(found[1]), found[2], float(found[3]), lines[i + 2]


def cpu_seconds(program, command):
    words = [program] + shlex.split(command)[1:]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 3):  # 3: the honest answer is no
        sys.exit(f"{command}\n  ended with status {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/foretoken"
    late = 0
    print("number,cpu_s,budget_s,share,question")
    for number, question, budget, command in questions(pathlib.Path("docs/questions.md").read_text(encoding="utf-8")):
        seconds = cpu_seconds(program, command)
        late += seconds > budget
        print(f"{number},{seconds:.2f},{budget:.0f},{seconds / budget:.2f},{question}", flush=True)
    sys.exit(1 if late else 0)


if __name__ == "__main__":
    main()
