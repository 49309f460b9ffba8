#!/usr/bin/env python3
"""Installs a build into a separate folder, and builds and runs programs that use only this installation.

    run.py BUILD COMPILER
"""
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MOST_HEADERS, MOST_LINES, MOST_EXAMPLE_LINES, MOST_MAIN_LINES = 20, 2500, 40, 30
build, compiler = Path(sys.argv[1]).resolve(), sys.argv[2]
work = build / "package_test"
prefix = work / "prefix"


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], **more)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}: {' '.join(str(word) for word in command)}")
    return done


def said(*command, **more):
    return run(*command, capture_output=True, text=True, **more).stdout


def configure(source, into, *arguments):
    return ["cmake", "-S", source, "-B", into, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}",
            "-DCMAKE_BUILD_TYPE=Debug", *arguments]


def check_headers():
    installed = sorted((prefix / "include").rglob("*.h"))
    lines = sum(len(header.read_text().splitlines()) for header in installed)
    if any(header.parent != prefix / "include/gradwire" for header in installed):
        sys.exit(f"headers are installed outside include/gradwire: {installed}")
    if len(installed) > MOST_HEADERS or lines > MOST_LINES:
        sys.exit(f"{len(installed)} headers with {lines} lines; at most {MOST_HEADERS} and {MOST_LINES}")
    for program in [*sorted((ROOT / "examples").glob("*.cpp")), HERE / "main.cpp"]:
        most = MOST_MAIN_LINES if program.parent == HERE else MOST_EXAMPLE_LINES
        if len(program.read_text().splitlines()) > most:
            sys.exit(f"{program} has more than {most} lines")


def check_partial_builds():
    """A build of some programs, or of none, installs what is there."""
    partial, some = work / "partial", work / "some"
    run("cmake", "-S", ROOT, "-B", partial, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", "-DGRADWIRE_TESTS=OFF",
        stdout=subprocess.DEVNULL)
    (partial / "bin").mkdir(exist_ok=True)
    shutil.copy(build / "bin/gradwire-client", partial / "bin")
    text = said("cmake", "--install", partial, "--prefix", some)
    if "Not installed: headers and libraries" not in text or not (some / "bin/gradwire-client").exists():
        sys.exit(f"a partial build is not installed well: {text}")
    if (some / "bin/gradwire").exists() or (some / "lib").exists() or (some / "include").exists():
        sys.exit("a partial build installs more than its programs")


def run_examples():
    run(*configure(ROOT / "examples", work / "examples"))
    run("cmake", "--build", work / "examples")
    folder = work / "results"
    folder.mkdir()
    together = {"client", "server"}
    for example in sorted(path.stem for path in (ROOT / "examples").glob("*.cpp")):
        if example not in together:
            run(work / "examples" / example, cwd=folder, timeout=300)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = "127.0.0.1:" + str(probe.getsockname()[1])
    processes = [subprocess.Popen([work / "examples/server", address], cwd=folder)]
    processes += [subprocess.Popen([work / "examples/client", address, str(i)], cwd=folder) for i in range(3)]
    try:
        codes = [process.wait(120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(codes):
        sys.exit(f"examples/server and three of examples/client: exit codes {codes}")


def check_components():
    """Builds for each component, on a machine that seems to have only the packages that the component needs."""
    files = {"engine": HERE / "engine.cpp", "simulation": HERE / "main.cpp", "client": ROOT / "examples/client.cpp"}
    descriptions = said("pkg-config", "--variable=pcfiledir", "libzstd")
    (work / "pkgconfig").mkdir()
    shutil.copy(Path(descriptions.strip()) / "libzstd.pc", work / "pkgconfig")
    with_zstd_alone = {**os.environ, "PKG_CONFIG_LIBDIR": str(work / "pkgconfig")}
    for component, source in files.items():
        into = work / f"component-{component}"
        headers = [f"-DHEADERS={prefix / 'include'}"] if component == "simulation" else []
        run(*configure(HERE, into, f"-DCOMPONENT={component}", f"-DSOURCE={source}", *headers), env=with_zstd_alone)
        run("cmake", "--build", into)
        if component != "client":
            run(into / "program")
    for component in ["server", "no-such-component"]:
        done = subprocess.run(configure(HERE, work / f"component-{component}", f"-DCOMPONENT={component}"), env=with_zstd_alone,
                              capture_output=True, text=True)
        if done.returncode == 0 or not re.search("sqlite3|no-such-component", done.stderr):
            sys.exit(f"component {component}: exit code {done.returncode}: {done.stderr}")
    # A program with a client contains no reader of experiment files, and no server part of an algorithm.
    symbols = said("nm", "-C", work / "component-client/program")
    for present in ["gradwire::make_client<", "gradwire::run_client"]:
        if present not in symbols:
            sys.exit(f"the client lacks the symbol '{present}', so the check of absent symbols would be void")
    for absent in ["toml::", "gradwire::load_experiment", "gradwire::make_server<", "::Server<", "ServerAlgorithm<", "CLI::",
                   "sqlite3_"]:
        for line in symbols.splitlines():
            if absent in line:
                sys.exit(f"the client must not contain '{absent}': {line}")


def check_shared_library():
    """The shared library shows only the public names, and a program runs with it."""
    run("cmake", "--build", build, "--target", "gradwire_shared")
    library = build / "libgradwire.so"
    names = said("nm", "-D", "-C", "--defined-only", library).splitlines()
    public = "\n".join(header.read_text() for header in (prefix / "include/gradwire").glob("*.h"))
    foreign = []
    for line in names:
        name = line.split(" ", 2)[2]
        word = re.search(r"gradwire::(\w+)", name)
        if re.match(r"(guard variable for |typeinfo |vtable |VTT |construction vtable )?(std::|void std::|operator|bool std::)", name):
            continue
        if not word or not re.search(rf"\b{word[1]}\b", public):
            foreign.append(name)
    if foreign:
        sys.exit(f"{len(foreign)} private names are visible in {library.name}: {foreign[:20]}")
    run(compiler, "-std=c++20", f"-I{prefix / 'include'}", HERE / "main.cpp", library, f"-Wl,-rpath,{build}", "-o", work / "shared")
    run(work / "shared")


def check_python():
    """The Python package, if it is built, runs where it is installed, and still in the build."""
    interpreter = re.search(r"^GRADWIRE_PYTHON_INTERPRETER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)[1]
    if interpreter:
        installed, = prefix.glob("lib/python3*/*-packages")
        for folder in (installed, build / "python"):
            path = said(interpreter, "-c", "import gradwire; print(gradwire.__file__)", env={**os.environ, "PYTHONPATH": str(folder)})
            if path != f"{folder}/gradwire/__init__.py\n":
                sys.exit(f"the package of {folder} is in {path}")


shutil.rmtree(work, ignore_errors=True)
run("cmake", "--install", build, "--prefix", prefix, stdout=subprocess.DEVNULL)
for file in ["bin/gradwire", "bin/gradwire-server", "bin/gradwire-client", "include/gradwire/oracle.h", "share/licenses/gradwire/LICENSE"]:
    if not (prefix / file).exists():
        sys.exit(f"{file} is not installed")
run(prefix / "bin/gradwire", "--version")
check_headers()
check_python()
check_partial_builds()
run_examples()
check_components()
check_shared_library()
