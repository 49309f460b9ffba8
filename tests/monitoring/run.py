#!/usr/bin/env python3
"""Checks that the alert rules and the dashboard of packaging/monitoring use only metrics that servers and relays have.

    run.py BUILD
"""
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROMQL = {"by", "instance", "and", "bool", "rate", "increase", "sum", "time", "histogram_quantile"}
EXPERIMENT = """[problem]
kind = "quadratic"
dim = 3
[clients]
count = 2
[algorithm]
name = "gd"
step_size = 0.1
"""


def metrics_of(command, folder):
    """Starts a program with --state and returns the names of the metrics that it writes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        file = folder / "metrics.prom"
        for _ in range(600):
            if file.exists() and process.poll() is None:
                return set(re.findall(r"^(\w+)", file.read_text(), re.M)) | set(
                    re.findall(r"^# TYPE (\w+)", file.read_text(), re.M))
            time.sleep(0.05)
        sys.exit(f"no metrics after 30 s: {' '.join(map(str, command))}")
    finally:
        process.kill()
        process.wait()


def names_in(expression):
    """Returns the names of metrics in an expression: all words outside labels and strings."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"|\(instance, direction\)", "", expression)
    return {word for word in re.findall(r"[a-zA-Z_]\w*", bare) if word not in PROMQL}


def main():
    server = Path(sys.argv[1]) / "bin/gradwire-server"
    alerts = (ROOT / "packaging/monitoring/gradwire-alerts.yml").read_text()
    dashboard = json.loads((ROOT / "packaging/monitoring/gradwire-dashboard.json").read_text())
    used = {"alerts": set(), "dashboard": set()}
    expressions = re.findall(r"^ +expr: (?:>-\n)?((?:.+\n)(?: {10}\S.*\n)*)", alerts, re.M)
    if len(expressions) != alerts.count("alert: "):
        sys.exit(f"{len(expressions)} expressions of {alerts.count('alert: ')} alerts were read")
    for expression in expressions:
        used["alerts"] |= names_in(re.sub(r"\n +(for|labels|annotations):[\s\S]*", "", expression))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            used["dashboard"] |= names_in(target["expr"])
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        (scratch / "run.toml").write_text(EXPERIMENT)
        known = metrics_of([server, scratch / "run.toml", "--listen", "127.0.0.1:0", "--state", scratch / "run"], scratch / "run")
        known |= metrics_of([server, "relay", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--state", scratch / "relay"],
                            scratch / "relay")
    for where, names in used.items():
        if len(names) < 8:
            sys.exit(f"{where}: only {sorted(names)} were found")
        unknown = names - known - {"up"}
        if unknown:
            sys.exit(f"{where}: no server or relay has {sorted(unknown)}")
    print(f"{len(used['alerts'])} metrics of alerts and {len(used['dashboard'])} of the dashboard exist")


main()
