"""Runs servers, clients and relays through a bad network, stops and kills them, and checks how each run ends.

    python3 tools/torture --runs 200 --jobs 2 --bin build/release/bin

The faults of a run follow from --seed and its number; their exact times depend on the machine. If a run fails, torture
prints the command that repeats only this run, and keeps its folder. It needs Linux, and connects only to 127.0.0.0/8."""
import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # writes nothing to the folder of sources

import plan
import programs
import run

HERE = pathlib.Path(__file__).resolve().parent
LONGEST_SECONDS = 480  # time limit of one run


def options():
    parser = argparse.ArgumentParser(prog="python3 tools/torture", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, metavar="N", help="number of runs")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed of all runs")
    parser.add_argument("--jobs", type=int, default=2, metavar="J", help="runs at a time")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds, and no runs that wait 45 s for a silent peer")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent.parent / "build/release/bin", metavar="DIR",
                        help="folder of the programs")
    parser.add_argument("--only", type=int, metavar="I", help="only run number I")
    parser.add_argument("--logs", type=pathlib.Path, metavar="DIR",
                        help="folder for the folders of the runs (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="also keep the folders of runs that pass")
    parser.add_argument("--patience", type=float, default=1.0, metavar="F",
                        help="factor for all deadlines, for slow machines")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def own_command(o, index):
    words = ["python3", str(HERE), "--seed", str(o.seed), "--only", str(index), "--bin", str(o.bin)]
    return words + (["--quick"] if o.quick else []) + (["--patience", f"{o.patience:g}"] if o.patience != 1 else [])


class Batch:
    """All runs. Each is a process with its own process group; `at_work` has those in progress."""

    def __init__(self, o, logs):
        self.o, self.logs, self.at_work, self.results = o, logs, {}, []

    def start(self, index):
        folder = self.logs / f"run{index}"
        folder.mkdir(parents=True, exist_ok=True)
        out = open(folder / "result.json", "w")
        argv = [sys.executable, *own_command(self.o, index)[1:], "--child", "--logs", str(folder)]
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, start_new_session=True,
                                 preexec_fn=programs.die_with_parent)
        self.at_work[child] = (index, folder, time.monotonic())

    def end(self, child):
        index, folder, began = self.at_work.pop(child)
        left = programs.members(child.pid)
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        try:
            result = json.loads((folder / "result.json").read_text())
        except ValueError:
            title = plan.make(self.o.seed, index, self.o.quick).title()
            result = {"index": index, "title": title, "seconds": time.monotonic() - began, "counts": {},
                      "failure": f"the process of the run ended with {child.returncode}"}
        if left and not result["failure"]:
            result["failure"] = f"processes still run: {left}"
        self.results.append(result)
        how = result["failure"] or "passed"
        print(f"run {index:3}  {result['seconds']:5.1f} s  {result['title']}: {how}", flush=True)
        if result["failure"]:
            print(f"         its folder is {folder}; to repeat it: {' '.join(own_command(self.o, index))}", flush=True)
        elif not self.o.keep:
            shutil.rmtree(folder, ignore_errors=True)

    def work(self, indices):
        todo = collections.deque(indices)
        while todo or self.at_work:
            while todo and len(self.at_work) < max(1, self.o.jobs):
                self.start(todo.popleft())
            for child in list(self.at_work):
                age = time.monotonic() - self.at_work[child][2]
                if child.poll() is None and age > LONGEST_SECONDS * self.o.patience:
                    child.kill()
                    child.wait()
                if child.poll() is not None:
                    self.end(child)
            time.sleep(0.02)

    def stop(self):
        for child in self.at_work:
            os.killpg(child.pid, signal.SIGKILL)


def table(results, seconds):
    counts = collections.Counter()
    by = collections.defaultdict(lambda: [0, 0])
    for r in results:
        counts.update(r["counts"])
        words = r["title"].split(", ")
        for word in words[:4]:
            by[word][0] += 1
            by[word][1] += bool(r["failure"])
    print("\n" + "  ".join(f"{kind}: {n}" for kind, n in sorted(counts.items())))
    for word, (n, bad) in sorted(by.items()):
        print(f"{word:14} {n:4} runs {bad:4} failed")
    good = [r for r in results if not r["failure"]]
    print(f"\nprocesses started {sum(r.get('starts', 0) for r in results)}, "
          f"rounds {sum(r.get('rounds', 0) for r in good)}, faults {sum(counts.values())}, "
          f"servers that ended after ten deadlines {sum(r.get('gave_up', 0) for r in results)}")
    def most(what):
        return max([r.get(what, 0) for r in results], default=0)

    print(f"servers: at most {most('largest') / 1e6:.1f} MB of memory, grew by at most {most('growth') / 1e6:.1f} MB; "
          f"{most('descriptors')} descriptors in addition to the connections; listened within {most('slowest_start'):.2f} s")
    print(f"relays: grew by at most {most('relay_growth') / 1e6:.1f} MB; state of a client: at most "
          f"{most('client_state') / 1e6:.1f} MB; longest run {most('seconds'):.1f} s")
    print(f"{len(good)} of {len(results)} runs passed, {seconds:.0f} s")


def main():
    o = options()
    o.bin = o.bin.resolve()
    if o.child:
        print(json.dumps(run.one(plan.make(o.seed, o.only, o.quick), o.bin, o.logs, o.patience)))
        return 0
    for name in ("gradwire", "gradwire-server", "gradwire-client"):
        if not os.access(o.bin / name, os.X_OK):
            print(f"torture: {o.bin / name} does not exist; build it with tools/build, or give --bin DIR", file=sys.stderr)
            return 2
    logs = o.logs.resolve() if o.logs else pathlib.Path(tempfile.mkdtemp(prefix="gradwire-torture-"))
    batch = Batch(o, logs)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.monotonic()
    try:
        batch.work([o.only] if o.only is not None else range(o.runs))
    finally:
        batch.stop()
    table(batch.results, time.monotonic() - began)
    if not o.logs and not any(logs.iterdir()):
        logs.rmdir()
    return 1 if any(r["failure"] for r in batch.results) else 0


if __name__ == "__main__":
    sys.exit(main())
