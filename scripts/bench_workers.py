#!/usr/bin/env python3
"""One worker against several that share a search or a study through PostgreSQL, in CPU seconds.

    scripts/bench_workers.py [--program build/foretoken] [--workers 2] -- plan serve --model Llama-3.1-8B ...

Starts a PostgreSQL server of its own, runs the command with one worker and then with several, each time in a new database, and
compares their answers byte for byte. On a busy machine, wall-clock time says little. Linux counts how long each worker was ready to run
but waited for a core (/proc/PID/schedstat). Wall-clock time minus this wait is about what the worker would take with a core of its
own; it still includes waits for other workers and for the server. The speedup is this time for one worker alone, divided by that of
the slowest of several workers.
"""
import argparse
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

NOBODY = 65534


def as_nobody():
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


class Server:
    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        self.bin = pathlib.Path(found[-1]) if found else pathlib.Path(shutil.which("postgres") or sys.exit("no PostgreSQL server here")).parent
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretoken-bench-", dir="/tmp"))
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "preexec_fn": as_nobody, "cwd": "/"}
        subprocess.run([self.bin / "initdb", "-D", self.folder / "data", "-U", "bench", "-A", "trust", "--no-sync"], check=True, **quiet)
        self.process = subprocess.Popen([self.bin / "postgres", "-D", self.folder / "data", "-k", self.folder, "-c", "listen_addresses=",
                                         "-c", "fsync=off"], **quiet)
        while subprocess.run([self.bin / "pg_isready", "-h", self.folder, "-q"], check=False).returncode != 0:
            time.sleep(0.1)

    def database(self, name):
        subprocess.run([self.bin / "createdb", "-h", self.folder, "-U", "bench", name], check=True)
        return f"postgresql://bench@/{name}?host={self.folder}"

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def waited_for_core(pid):
    """Seconds that a process, which may have ended but not been reaped, was ready to run and did not."""
    waited = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        waited += int((task / "schedstat").read_text().split()[1])
    return waited / 1e9


def run(program, command, store, workers, folder):
    """Answer, CPU seconds of each worker, seconds each would take with a core of its own, and seconds on the wall."""
    start = time.monotonic()
    outputs = [folder / f"{workers}_{i}" for i in range(workers)]
    children = {}
    for i, output in enumerate(outputs):
        line = [program] + command + ["--json", "--threads", "1", "--store", store, "--ranks", str(workers), "--rank", str(i)]
        with open(output, "wb") as file:
            children[subprocess.Popen(line, stdout=file).pid] = i
    cpu, alone = [0.0] * workers, [0.0] * workers
    while children:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
        waited = waited_for_core(ended) if ended in children else 0
        pid, status, usage = os.wait4(ended, 0)
        if pid not in children:
            continue
        alone[children[pid]] = time.monotonic() - start - waited
        if os.waitstatus_to_exitcode(status) not in (0, 3):
            sys.exit("a worker failed")
        cpu[children.pop(pid)] = usage.ru_utime + usage.ru_stime
    return outputs[0].read_bytes(), cpu, alone, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/foretoken")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    server = Server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            alone, cpu_alone, own_alone, wall_alone = run(given.program, given.command, server.database("alone"), 1, pathlib.Path(folder))
            shared, cpu_shared, own_shared, wall_shared = run(given.program, given.command, server.database("shared"), given.workers, pathlib.Path(folder))
    finally:
        server.stop()
    if alone != shared:
        sys.exit("the answers differ")
    print(f"one worker: {cpu_alone[0]:.1f} s of CPU, {own_alone[0]:.1f} s with a core of its own, {wall_alone:.1f} s wall-clock")
    for i, (cpu, own) in enumerate(zip(cpu_shared, own_shared)):
        print(f"worker {i + 1} of {given.workers}: {cpu:.1f} s of CPU, {own:.1f} s with a core of its own")
    print(f"{given.workers} workers: {wall_shared:.1f} s wall-clock; answers are byte-identical")
    together = sum(cpu_shared) / cpu_alone[0]
    print(f"total CPU {together:.2f} times that of one worker; speedup: at most {given.workers / together:.2f} by CPU time, "
          f"{own_alone[0] / max(own_shared):.2f} with a core for each worker, {wall_alone / wall_shared:.2f} wall-clock")


if __name__ == "__main__":
    main()
