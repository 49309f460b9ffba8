#!/usr/bin/env python3
"""Tests the library that programs in C use, as they do: its header, its files and its examples.

    run.py LIBRARY PROGRAMS TLS     LIBRARY: the folder of libgradwire_client.so.1 and .a; PROGRAMS: that of gradwire-server;
                                    TLS: GRADWIRE_TLS of the library
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MOST_BYTES = {"off": 3_000_000, "mbedtls": 3_900_000, "openssl": 8_000_000}  # docs/c_api.md
ROUNDS = 50
EXPERIMENT = f"""
name = "line"
[problem]
kind = "custom"
dim = 2
[clients]
count = 3
[algorithm]
name = "ef21"
compressor = "topk:k=1"
step_size = 0.1
[run]
rounds = {ROUNDS}
"""


def check(condition, what):
    """Ends the test if the condition does not hold."""
    if not condition:
        sys.exit(f"FAILED: {what}")


def output_of(*command, **more):
    """Runs a command and returns its output."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=False, **more)
    check(done.returncode == 0, f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


class Server:
    """A gradwire-server with an experiment, in a folder of its own."""

    def __init__(self, programs, folder, experiment):
        folder.mkdir()
        (folder / "run.toml").write_text(experiment)
        self.folder = folder
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen([programs / "gradwire-server", "run.toml", "--listen", "127.0.0.1:0", "--state", "state"],
                                        cwd=folder, stdout=self.log, stderr=self.log)
        for _ in range(1000):
            if (folder / "state/address").exists():
                break
            time.sleep(0.02)
        self.address = (folder / "state/address").read_text().strip()

    def model(self):
        """Waits for the end, and returns the bytes of the model."""
        check(self.process.wait(60) == 0, (self.folder / "log").read_text())
        return (self.folder / "state/model.bin").read_bytes()


def run_clients(programs, folder, clients):
    """Runs a federation of three clients, each started by clients(address, number). Returns the model."""
    server = Server(programs, folder, EXPERIMENT)
    running = [subprocess.Popen([str(part) for part in clients(server.address, k)], stdout=subprocess.PIPE, text=True)
               for k in range(3)]
    for number, client in enumerate(running):
        out, _ = client.communicate(timeout=60)
        check(client.returncode == 0 and out == f"client {number}: the run is over\n", out)
    return server.model()


def main():
    library, programs = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    shared, archive = library / "libgradwire_client.so.1", library / "libgradwire_client.a"
    include = f"-I{ROOT / 'c_api'}"
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        # ---- the header ----
        for compiler, standard in (("gcc", "-std=c99"), ("g++", "-std=c++20")):
            (work / "header.c").write_text('#include "gradwire.h"\n#include "gradwire.h"\nint main(void) { return 0; }\n')
            output_of(compiler, "-x", "c" if compiler == "gcc" else "c++", standard, "-pedantic", "-Wall", "-Wextra", "-Werror",
                      include, "-fsyntax-only", work / "header.c")
        output_of("gcc", "-std=c99", include, HERE / "offsets.c", "-o", work / "offsets")
        check(output_of(work / "offsets") == (HERE / "offsets_64.txt").read_text(), "the layout of gradwire.h has changed")
        if shutil.which("arm-linux-gnueabihf-gcc") and shutil.which("qemu-arm"):
            output_of("arm-linux-gnueabihf-gcc", "-std=c99", "-static", include, HERE / "offsets.c", "-o", work / "offsets_32")
            check(output_of("qemu-arm", work / "offsets_32") == (HERE / "offsets_32.txt").read_text(), "its layout for 32 bits has changed")
        # ---- the files ----
        exported = sorted(line.split()[-1].split("@")[0] for line in output_of("nm", "-D", "--defined-only", shared).splitlines())
        exported = [symbol for symbol in exported if symbol != "GRADWIRE_1"]
        check(exported == (ROOT / "c_api/gradwire_c.symbols").read_text().split(), f"{shared.name} exports {exported}")
        size = shared.stat().st_size
        print(f"{shared.name}: {size} bytes, TLS: {sys.argv[3]}")
        check(size <= MOST_BYTES[sys.argv[3]], f"{shared.name} has {size} bytes, more than {MOST_BYTES[sys.argv[3]]}")
        defined = sorted(line.split()[-1] for line in output_of("nm", "-g", "--defined-only", archive).splitlines() if " T " in line)
        check(defined == exported, f"{archive.name} shows {defined}")
        # ---- the examples ----
        example = ROOT / "examples/c_client.c"
        check(example.read_text() in (ROOT / "docs/c_api.md").read_text(), "docs/c_api.md shows another c_client.c")
        output_of("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", include, example, shared, "-o", work / "by_shared")
        output_of("gcc", "-std=c99", include, example, archive, "-lm", "-o", work / "by_archive")
        output_of("g++", "-std=c++20", "-x", "c++", include, example, "-x", "none", shared, "-o", work / "by_cpp")
        os.environ["LD_LIBRARY_PATH"] = str(library)
        models = {kind: run_clients(programs, work / f"run_{kind}", lambda address, k, kind=kind: (work / kind, address, k))
                  for kind in ("by_shared", "by_archive", "by_cpp")}
        models["ctypes"] = run_clients(programs, work / "run_ctypes", lambda address, k: (
            sys.executable, ROOT / "examples/c_client.py", address, k, shared))
        check(len(set(models.values())) == 1, "the examples train different models")
        # ---- memory ----
        output_of("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", include, HERE / "memory.c", shared, "-o", work / "memory")
        experiment = EXPERIMENT.replace("dim = 2\n", "dim = 2410\n").replace("count = 3", "count = 1").replace("k=1", "k=1%")
        for how, expected in (("enough", 1), ("less", -2)):
            server = Server(programs, work / how, experiment)
            status, needed, peak, grown, *why = output_of(work / "memory", server.address, how).split()
            print(f"memory, {how}: status {status}, needed {needed}, peak {peak}, grown {grown} {' '.join(why)}")
            check(int(status) == expected, f"memory, {how}: {status} {' '.join(why)}")
            check(int(peak) <= int(needed), "the region was too small")
            check(int(grown) == 0, f"rounds took {grown} bytes of malloc()")
            server.process.kill()
    print("all is well")


if __name__ == "__main__":
    main()
