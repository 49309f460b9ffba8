#!/usr/bin/env python3
"""Installs a build into a separate folder, builds a project that uses only this installation, and runs its programs.

    run.py BUILD COMPILER
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
build, compiler = Path(sys.argv[1]), sys.argv[2]
work = build / "package_test"
prefix = work / "prefix"


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], **more)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}: {' '.join(str(word) for word in command)}")
    return done


def configure(source, into, *arguments):
    return ["cmake", "-S", source, "-B", into, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}",
            "-DCMAKE_BUILD_TYPE=Debug", *arguments]


shutil.rmtree(work, ignore_errors=True)
run("cmake", "--install", build, "--prefix", prefix)
for file in ["bin/gradwire", "bin/gradwire-server", "bin/gradwire-client", "include/gradwire/oracle.h",
             "include/gradwire/proto/wire/wire.pb.h", "share/licenses/gradwire/LICENSE"]:
    if not (prefix / file).exists():
        sys.exit(f"{file} is not installed")
run(prefix / "bin/gradwire", "--version")
# A build of some programs, or of none, installs what is there.
partial, some = work / "partial", work / "some"
run("cmake", "-S", HERE.parent.parent, "-B", partial, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", "-DGRADWIRE_TESTS=OFF",
    stdout=subprocess.DEVNULL)
(partial / "bin").mkdir(exist_ok=True)
shutil.copy(build / "bin/gradwire-client", partial / "bin")
said = run("cmake", "--install", partial, "--prefix", some, capture_output=True, text=True).stdout
if "Not installed: headers and libraries" not in said or not (some / "bin/gradwire-client").exists():
    sys.exit(f"a partial build is not installed well: {said}")
if (some / "bin/gradwire").exists() or (some / "lib").exists() or (some / "include").exists():
    sys.exit("a partial build installs more than its programs")
run(*configure(HERE, work / "build"))
run("cmake", "--build", work / "build")
for program in ["outside", "compress", "expression", "custom_model", "custom_loss", "custom_oracle", "custom_algorithm",
                "custom_asynchronous", "custom_compressor", "custom_transport"]:
    run(work / "build" / program)

# Builds components as on a machine without SQLite and Asio: pkg-config finds only zstd.
descriptions = subprocess.run(["pkg-config", "--variable=pcfiledir", "libzstd"], check=True, capture_output=True, text=True)
(work / "pkgconfig").mkdir()
shutil.copy(Path(descriptions.stdout.strip()) / "libzstd.pc", work / "pkgconfig")
with_zstd_alone = {**os.environ, "PKG_CONFIG_LIBDIR": str(work / "pkgconfig")}
for component in ["engine", "simulation", "client"]:
    into = work / f"components-{component}"
    run(*configure(HERE / "components", into, f"-DCOMPONENT={component}"), env=with_zstd_alone)
    run("cmake", "--build", into)
    if component == "client":
        run("sh", HERE / "components/serve.sh", prefix / "bin/gradwire-server", into / "program", into / "served")
    else:
        run(into / "program")
for component in ["server", "no-such-component"]:
    done = subprocess.run([str(word) for word in configure(HERE / "components", work / f"components-{component}",
                                                            f"-DCOMPONENT={component}")],
                          env=with_zstd_alone, capture_output=True, text=True)
    if done.returncode == 0 or not re.search("sqlite3|no-such-component", done.stderr):
        sys.exit(f"component {component}: exit code {done.returncode}: {done.stderr}")

# A program with a client contains no reader of data or experiment files, and no server part of an algorithm.
symbols = subprocess.run(["nm", "-C", work / "components-client/program"], check=True, capture_output=True, text=True).stdout
for present in ["gradwire::make_client<", "gradwire::run_client"]:
    if present not in symbols:
        sys.exit(f"the client lacks the symbol '{present}', so the check of absent symbols would be void")
for absent in ["toml::", "inflate", "gradwire::read_source", "gradwire::load_experiment", "gradwire::make_server<", "::Server<",
               "ServerAlgorithm<", "CLI::", "sqlite3_"]:
    for line in symbols.splitlines():
        if absent in line:
            sys.exit(f"the client must not contain '{absent}': {line}")
