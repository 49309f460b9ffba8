#!/usr/bin/env python3
"""Follows the tutorials of docs/tutorials: runs every command in a scratch folder and compares the output with the page.

    run.py BUILD [COMPILER]

A fenced block is read by its language and title:
    ```sh                      commands; they run in bash, with the programs of BUILD/bin first in PATH
    ```sh title="machine A"    the same on one of several machines: a folder for each. A word after a comma is a second terminal
    ```toml title="a.toml"     a file, for the machine of the next commands; also in other languages
    ```text                    the output of the commands before: each line must come, in this order. `...` stands for any words;
                               numbers may differ by a tenth, as compilers and processors round differently
`<!-- keeps running -->` before commands: the next block does not wait for their end. `<!-- after the end of all -->` before
commands, and the end of the page, wait for those that keep running; they must end with 0.
The address 192.0.2.7 becomes 127.0.0.1, port 7000 a free one, and scp copies between the folders of the machines.

Also checks that the reference names every option of every command.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
PATIENCE_S = 60
SCP = '#!/bin/sh\nexec cp "$1" "$SCRATCH/$(echo "$2" | cut -d: -f1)/$(echo "$2" | cut -d: -f2)"\n'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def blocks_of(page):
    """Yields (language, title, text, the line before it, line number) of each fenced block."""
    lines, k = page.read_text(encoding="utf-8").splitlines(), 0
    while k < len(lines):
        fence = re.match(r'```(\w*)(?: title="([^"]*)")?$', lines[k])
        if fence:
            end = lines.index("```", k + 1)
            yield fence[1], fence[2] or "", "\n".join(lines[k + 1:end]), lines[k - 1], k + 1
            k = end
        k += 1


def same_word(expected, word):
    """Words are equal, apart from the last digits of their numbers."""
    if re.split(NUMBER, expected) != re.split(NUMBER, word):
        return False
    pairs = zip(re.findall(NUMBER, expected), re.findall(NUMBER, word))
    return all(abs(float(a) - float(b)) <= 0.1 * abs(float(a)) for a, b in pairs)


def same_words(expected, words):
    if not expected:
        return not words
    if expected[0] == "...":
        return same_words(expected[1:], words) or bool(words) and same_words(expected, words[1:])
    return bool(words) and same_word(expected[0], words[0]) and same_words(expected[1:], words[1:])


def first_missing(expected, output):
    """Returns the first expected line that does not come in the output, in this order, or None."""
    lines = iter(output.splitlines())
    for line in filter(str.strip, expected.splitlines()):
        # A terminal shows progress without the time that begins a line of the log.
        if not any(same_words(line.split(), found.split()) or same_words(line.split(), found.split()[2:]) for found in lines):
            return line
    return None


class Page:
    def __init__(self, page, build, scratch):
        self.page, self.scratch, self.running, self.last = page, scratch, [], None
        self.changes = {"192.0.2.7": "127.0.0.1", "7000": free_port()}
        if "~/gradwire" in page.read_text(encoding="utf-8"):
            subprocess.run(["cmake", "--install", build, "--prefix", scratch / "gradwire"], check=True, stdout=subprocess.DEVNULL)
        tools = scratch / ".bin"
        tools.mkdir()
        (tools / "scp").write_text(SCP)
        (tools / "scp").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{build / 'bin'}:{tools}:{os.environ['PATH']}", "SCRATCH": str(scratch),
                            "HOME": str(scratch), "XDG_CACHE_HOME": str(scratch / ".cache"), "GRADWIRE_DATA": ""}

    def fail(self, number, message):
        for process, _, _ in self.running:
            process.kill()
        sys.exit(f"{self.page.relative_to(ROOT)}:{number}: {message}")

    def here(self, text):
        for old, new in self.changes.items():
            text = text.replace(old, new)
        return text

    def folder(self, title):
        folder = self.scratch / (re.sub(r"\W+", "-", title.split(",")[0].lower()) or "here")
        if not folder.exists():
            folder.mkdir()
            (folder / "experiments").symlink_to(ROOT / "experiments")
        return folder

    def run(self, title, text, keeps_running, number):
        folder = self.folder(title)
        log = folder / f".output-{number}"
        kept = folder / ".environment"  # variables that the reader has set in this terminal
        script = f"set -a; [ ! -f {kept} ] || . {kept}; set -e\n{self.here(text)}\ndeclare -px > {kept}\n"
        with open(log, "w") as output:
            process = subprocess.Popen(["bash", "-c", script], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT)
        self.running.append((process, log, number))
        self.last = (process, log)
        if not keeps_running:
            self.running.pop()
            if process.wait(timeout=PATIENCE_S) != 0:
                self.fail(number, f"the commands end with {process.returncode}:\n{log.read_text()}")

    def expect(self, text, number):
        process, log = self.last
        deadline = time.monotonic() + PATIENCE_S
        while True:
            over, output = process.poll() is not None, log.read_text(errors="replace")
            missing = first_missing(self.here(text), output)
            if missing is None:
                return
            if over or time.monotonic() > deadline:
                self.fail(number, f"the output lacks, from here on:\n{missing}\nIt is:\n{output}")
            time.sleep(0.05)

    def wait(self):
        for process, log, number in self.running:
            if process.wait(timeout=PATIENCE_S) != 0:
                self.fail(number, f"the commands end with {process.returncode}:\n{log.read_text()}")
        self.running = []

    def follow(self):
        blocks, commands = list(blocks_of(self.page)), 0
        for k, (language, title, text, before, number) in enumerate(blocks):
            if before == "<!-- after the end of all -->":
                self.wait()
            if language == "sh":
                self.run(title, text, before == "<!-- keeps running -->", number)
                commands += 1
            elif language == "text":
                self.expect(text, number)
            elif title:
                machine = next(t for l, t, *_ in blocks[k:] if l == "sh")
                (self.folder(machine) / title).write_text(text + "\n")
            else:
                self.fail(number, f"a block of {language or 'no language'} in a tutorial is neither run nor compared")
        self.wait()
        return commands


def check_options(build):
    """Each option that a --help prints stands in a page of the reference."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    commands = [["gradwire", *c.split()] for c in ("run", "sweep", "compare", "optimum", "new", "evaluate", "export", "plot", "list",
                                                  "bench", "data list", "data fetch")]
    commands += [["gradwire-server", *c.split()] for c in ("", "relay", "status", "init", "enroll", "revoke", "role", "renew",
                                                           "certify", "clients")] + [["gradwire-client"]]
    for command in commands:
        help_text = subprocess.run([build / "bin" / command[0], *command[1:], "--help"], capture_output=True, text=True).stdout
        options = set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", help_text, re.M)) - {"--help", "--version"}
        for option in sorted(options):
            if not re.search(rf"(?<![\w-]){option}(?![\w-])", pages):
                sys.exit(f"docs/reference: no page names {option} of {' '.join(command)}")


def main():
    build = Path(sys.argv[1]).resolve()
    if not all((build / "bin" / name).exists() for name in ("gradwire", "gradwire-server", "gradwire-client", "gradwire-bench")):
        print("SKIPPED: the programs are not built")
        return 77
    check_options(build)
    for page in sorted((ROOT / "docs/tutorials").glob("*.md")):
        scratch = Path(tempfile.mkdtemp(prefix="tutorial."))
        try:
            started = time.monotonic()
            commands = Page(page, build, scratch).follow()
            print(f"{page.name}: {commands} blocks of commands, {time.monotonic() - started:.1f} s")
            if not commands:
                sys.exit(f"{page.name} has no commands")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
