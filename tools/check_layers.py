#!/usr/bin/env python3
"""Checks the shape of the source tree from its #include lines (docs/explanation/architecture.md has the picture).

    tools/check_layers.py [ROOT]        prints FILE:LINE: message lines; exit code 1 if there is an error
    tools/check_layers.py --self-test   plants one violation of each kind and expects each to be found

It checks which room includes which, directly and through other headers; that pure rooms include nothing impure; third-party
includes in headers; #pragma once; cycles; the length of files; and that files named in the documents exist.
"""
import contextlib
import pathlib
import re
import sys
import tempfile

# The folders that each folder may include, directly or through other headers. A folder may always include itself. The order is
# that of docs/explanation/architecture.md: no folder may include one below it.
_ORACLES = "base engine engine/data engine/smoothness"
_ALGORITHMS = f"{_ORACLES} compressors algorithms/optimizers algorithms/core algorithms/support algorithms"
_ROUNDS = f"{_ALGORITHMS} rounds"
_SHARED = f"{_ROUNDS} engine/files parallel proto/wire storage config report"
_MODELS = "engine/oracles engine/kernels engine/nn engine/nn/models"
_PROBLEMS = f"{_MODELS} engine/problems"
_ENGINE = f"{_ORACLES} engine/files engine/tape engine/tape/debug {_PROBLEMS} engine/data/readers"
_SERVER = "fl_server/net fl_server/sessions fl_server/run_history fl_server/relay fl_server/access fl_server/metrics proto/security fl_server"
_SIMULATION = f"{_ENGINE} {_SHARED} mpi samples simulation simulation/optimum"
_RUNS = f"{_SIMULATION} plotting experiments/cli/support experiments/cli/run"
MAY_INCLUDE = {folder: allowed.split() for folder, allowed in {
    "base": "",
    "engine": "base",
    "engine/files": "base engine",
    "engine/tape": "base engine",
    "engine/tape/debug": "base engine engine/tape",
    "engine/kernels": "",
    "engine/data": "base engine",
    "engine/data/readers": "base engine engine/data",
    "engine/smoothness": "base engine engine/data",
    "engine/nn": "base engine engine/data engine/kernels",
    "engine/nn/models": "base engine engine/data engine/kernels engine/nn",
    "engine/oracles": f"{_ORACLES} engine/kernels",
    "engine/problems": f"{_ORACLES} {_MODELS}",
    "compressors": "base",
    "algorithms/optimizers": "base compressors",
    "algorithms/core": f"{_ORACLES} compressors",
    "algorithms/support": f"{_ORACLES} compressors algorithms/optimizers algorithms/core",
    "algorithms": f"{_ORACLES} compressors algorithms/optimizers algorithms/core algorithms/support",
    "rounds": _ALGORITHMS,
    "mpi": _ALGORITHMS,
    "parallel": _ALGORITHMS,
    "proto/lean": "",
    "proto/wire": _ALGORITHMS,
    "storage": f"{_ROUNDS} engine/files proto/wire",
    "proto/security": f"{_ROUNDS} engine/files proto/wire storage",
    "proto/security/openssl": f"{_ROUNDS} engine/files proto/wire storage proto/security",
    "proto/security/mbedtls": f"{_ROUNDS} engine/files proto/wire storage proto/security",
    "config": f"{_ROUNDS} engine/files {_PROBLEMS} proto/wire storage",
    "report": f"{_ROUNDS} engine/files proto/wire storage config {_PROBLEMS}",
    "samples": f"{_ROUNDS} engine/files {_PROBLEMS} proto/wire storage config engine/data/readers",
    "fl_client": f"{_ENGINE} {_SHARED} samples proto/security",
    # The server asks what a problem's dimension and start are; it has no data readers and no tape.
    "fl_server/net": f"{_ROUNDS} engine/files proto/wire storage proto/security",
    "fl_server/sessions": f"{_ROUNDS} engine/files proto/wire storage proto/security fl_server/net",
    "fl_server/access": f"{_ROUNDS} engine/files proto/wire storage proto/security fl_server/net fl_server/sessions",
    "fl_server/run_history": f"{_ROUNDS} engine/files proto/wire storage proto/security fl_server/net fl_server/sessions",
    "fl_server/relay": f"{_ROUNDS} engine/files proto/wire storage config {_PROBLEMS} proto/security fl_server/net fl_server/sessions fl_server/access",
    "fl_server/metrics": f"{_SHARED} {_PROBLEMS} proto/security fl_server/net fl_server/sessions",
    "fl_server": f"{_SHARED} {_PROBLEMS} proto/security fl_server/net fl_server/sessions fl_server/run_history fl_server/relay fl_server/access fl_server/metrics",
    "simulation": f"{_ENGINE} {_SHARED} mpi samples",
    "simulation/optimum": f"{_ENGINE} {_SHARED} mpi samples",
    "plotting": _SIMULATION,
    "experiments/cli/support": f"{_SHARED} {_PROBLEMS} mpi",
    "experiments/cli/data": f"{_SHARED} mpi {_PROBLEMS} engine/data/readers experiments/cli/support",
    "experiments/cli/run": f"{_SIMULATION} plotting experiments/cli/support",
    "experiments/cli/sweep": _RUNS,
    "experiments/cli": f"{_RUNS} experiments/cli/sweep experiments/cli/data",
    "api": f"{_RUNS} experiments/cli/sweep fl_client {_SERVER}",
    "c_api": f"{_ENGINE} {_SHARED} samples proto/security fl_client",
    # A client in a program links neither the simulation nor the server.
    "api/client": f"{_ENGINE} {_SHARED} samples proto/security fl_client",
    "api/server": f"{_RUNS} experiments/cli/sweep fl_client {_SERVER} api",
    "python/core": f"{_RUNS} experiments/cli/sweep fl_client {_SERVER} api",  # see also PUBLIC_ONLY_ROOMS
    "benchmarks": f"{_RUNS} experiments/cli/sweep fl_client {_SERVER}",
    "tests": f"{_RUNS} proto/lean proto/security/openssl experiments/cli/sweep experiments/cli/data experiments/cli fl_client c_api {_SERVER} api benchmarks",
}.items()}
ROOMS = {folder.split("/")[0] for folder in MAY_INCLUDE} | {"include"}

# The public headers, include/gradwire/NAME.h: the folder whose rules each obeys; "api" for the others.
PUBLIC = {"version": "base", "bad_input": "base", "random": "base", "oracle": "engine", "coordinates": "engine",
          "network": "engine/nn", "tape": "engine/tape", "compressor": "compressors", "client": "fl_client",
          "data": "engine/data"}

# Rooms that include only public headers and their own, as programs of users do.
PUBLIC_ONLY_ROOMS = ("python",)

# Folders, and folders in them, where equal input must give equal output. They use no clock, thread, file or console, and no
# generator with its own state.
PURE = ("base", "engine", "compressors", "algorithms", "rounds", "proto/lean", "proto/wire")
IMPURE = {"thread", "mutex", "shared_mutex", "condition_variable", "future", "chrono", "ctime", "time.h", "fstream",
          "iostream", "filesystem", "random"}
# Rooms for any device. They use only the C++ standard library.
STANDARD_ONLY_ROOMS = ("base", "engine", "compressors", "algorithms", "rounds")

# Exceptions to the rules of PURE. (file prefix, include prefix): reason
EXCEPTIONS = {
    ("engine/data/readers/", "filesystem"): "the readers of data sets open files",
    ("engine/files/", "filesystem"): "numbers are saved to files",
    ("engine/data/readers/", "zlib.h"): "data sets may be compressed with gzip",
    ("engine/data/readers/", "bzlib.h"): "data sets may be compressed with bzip2",
    ("engine/data/readers/", "lzma.h"): "data sets may be compressed with xz",
    ("proto/wire/back_off.", "chrono"): "when to try again; results never depend on it",
    ("proto/wire/back_off.", "random"): "jitter; results never depend on it",
}

# Third-party includes in headers. (header, include prefix): reason why a .cpp file cannot hide it
HEADER_EXCEPTIONS = {
    ("c_api/gradwire.h", "std"): "programs in C include this header",
    ("proto/security/openssl/openssl.h", "openssl/"): "only the .cpp files of its room include it",
    ("proto/wire/codec_", "proto/wire/wire.pb.h"): "only the .cpp files of the codec include it; codec.h hides it from others",
    ("python/core/", "pybind11/"): "every file of the room is about objects of Python",
    ("report/json.h", "nlohmann/"): "JSON values have a type of this library; only .cpp files include it",
}

DOCUMENTS = ("*.md", "docs/**/*.md")
# Names of files in documents, as paths from the root: `room/file.h`. tools/check_links.py checks links.
NAMED = re.compile(r"`((?:[\w-]+/)+[\w-]+\.[a-z]{1,5})(?::\d+)?`")

LINES_WARN = 400
LINES_FAIL = 500

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale
cmath compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring
ctime cuchar cwchar cwctype deque exception execution filesystem format forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new
numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream system_error thread tuple
type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
""".split())
# Headers of the operating system and the compiler. They are neither standard nor third-party.
SYSTEM = re.compile(r"^(sys/|arpa/|net/|netinet/|linux/|mach/|mach-o/)|^(unistd|fcntl|poll|spawn|signal|termios|time|pthread|sched|"
                    r"errno|netdb|dirent|immintrin|nmmintrin|arm_acle|x86intrin|cpuid|arm_neon|cxxabi|windows)(\.h)?$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Tree:
    def __init__(self, root):
        self.root = root
        self.errors, self.warnings = [], []
        self.includes = {}  # file -> [(line, quoted, name)]
        self.lines = {}
        for room in sorted(ROOMS):
            for path in sorted((root / room).rglob("*")):
                if path.suffix in (".h", ".cpp"):
                    self.read(path)

    def read(self, path):
        name = path.relative_to(self.root).as_posix()
        text = path.read_text(encoding="utf-8").splitlines()
        self.lines[name] = text
        self.includes[name] = [(k + 1, m[1] == '"', m[2]) for k, line in enumerate(text) if (m := INCLUDE.match(line))]

    def error(self, file, line, message):
        self.errors.append(f"{file}:{line}: {message}")

    def check(self):
        for file in self.includes:
            self.check_file(file)
        self.check_cycles()
        self.check_documents()

    def check_documents(self):
        for document in sorted(path for pattern in DOCUMENTS for path in self.root.glob(pattern)):
            name = document.relative_to(self.root).as_posix()
            for k, line in enumerate(document.read_text(encoding="utf-8").splitlines()):
                for match in NAMED.finditer(line):
                    ours = match[1].split("/")[0] in (*ROOMS, "cmake", "data", "docs", "tools")
                    if ours and not (self.root / match[1]).exists() and "NAME" not in match[0]:
                        self.error(name, k + 1, f"names {match[1]}, which does not exist")

    def check_file(self, file):
        if folder_of(file) not in MAY_INCLUDE:
            return self.error(file, 1, f"folder {folder_of(file)} is new: add it to MAY_INCLUDE in tools/check_layers.py")
        count = len(self.lines[file])
        if count > LINES_FAIL:
            self.error(file, count, f"{count} lines; split it (at most {LINES_FAIL})")
        elif count > LINES_WARN:
            self.warnings.append(f"{file}:{count}: warning: {count} lines; better below {LINES_WARN}")
        if file.endswith(".h") and "#pragma once" not in self.lines[file]:
            self.error(file, 1, "a header without #pragma once")
        # Programs that use the installed package. Only the package test builds them.
        if file.startswith("tests/package/"):
            return
        for line, quoted, name in self.includes[file]:
            if quoted:
                self.check_own(file, line, name)
            else:
                self.check_foreign(file, line, name)

    def check_own(self, file, line, name):
        """Checks an include of this tree, written as a path from the root."""
        name = in_tree(name)
        if name not in self.includes and not self.generated(name):
            self.error(file, line, f'"{name}" is not a file of this tree; write ROOM/FILE.h, or <...> for other libraries')
        elif room_of(file) in PUBLIC_ONLY_ROOMS and not name.startswith((f"{room_of(file)}/", "include/gradwire/")):
            self.error(file, line, f'{room_of(file)} includes only public headers, not "{name}"')
        elif not may_include(file, name):
            self.error(file, line, f'{folder_of(file)} may not include "{name}"')
        elif name.endswith(".pb.h"):
            if room_of(file) in STANDARD_ONLY_ROOMS:
                self.error(file, line, f"{room_of(file)} may not include protobuf")
            elif file.endswith(".h") and room_of(file) != "tests" and not excepted(file, name, HEADER_EXCEPTIONS):
                self.error(file, line, f'a header includes generated "{name}"; hide it in the .cpp')

    def check_foreign(self, file, line, name):
        room = room_of(file)
        if excepted(file, name, EXCEPTIONS):
            return
        if name in IMPURE and any((folder_of(file) + "/").startswith(pure + "/") for pure in PURE):
            self.error(file, line, f"{folder_of(file)} is pure and may not include <{name}>")
        if name in STANDARD or SYSTEM.search(name):
            return
        if room in STANDARD_ONLY_ROOMS:
            self.error(file, line, f"{room} uses only the standard library and may not include <{name}>")
        elif file.endswith(".h") and room != "tests" and not excepted(file, name, HEADER_EXCEPTIONS):
            self.error(file, line, f"a header includes third-party <{name}>; hide it in the .cpp")

    def check_cycles(self):
        state = {}

        def visit(file, path):
            state[file] = "open"
            for line, quoted, name in self.includes[file]:
                name = in_tree(name)
                if not quoted or name not in self.includes:
                    continue
                if state.get(name) == "open":
                    self.error(file, line, "include cycle: " + " -> ".join(path[path.index(name):] + [name]))
                elif name not in state:
                    visit(name, path + [name])
            state[file] = "done"

        for file in self.includes:
            if file not in state:
                visit(file, [file])

    def generated(self, name):
        """Whether a file is made from a .proto file; NAME_lean.pb.h is made by proto/lean, for tests."""
        return name.endswith(".pb.h") and (self.root / (name[:-5].removesuffix("_lean") + ".proto")).exists()


def in_tree(name):
    """The path of an included file from the root."""
    return f"include/{name}" if name.startswith("gradwire/") else name


def room_of(file):
    return folder_of(file).split("/")[0]


def folder_of(file):
    if file.startswith("include/gradwire/"):
        return PUBLIC.get(pathlib.PurePath(file).stem, "api")
    return "tests" if file.startswith("tests/") else file.rpartition("/")[0]


def may_include(file, name):
    return folder_of(name) in [folder_of(file)] + MAY_INCLUDE[folder_of(file)]


def excepted(file, name, exceptions):
    return any(file.startswith(f) and name.startswith(n) for f, n in exceptions)


@contextlib.contextmanager
def tree_of(files):
    """Yields a Tree of these files (NAME: TEXT), for self-tests."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield Tree(pathlib.Path(folder))


def self_test():
    """Plants one violation of each rule. The message must name it; a clean tree must give no message."""
    clean = {
        "base/rng_stream.h": "#pragma once\n#include <cstdint>\n",
        "include/gradwire/oracle.h": "#pragma once\n#include <vector>\n",
        "engine/data/readers/csv.cpp": "#include <zlib.h>\n#include <filesystem>\n",
        "compressors/topk.h": '#pragma once\n#include <span>\n#include "base/rng_stream.h"\n',
        "algorithms/gd.h": '#pragma once\n#include "compressors/topk.h"\n#include "gradwire/oracle.h"\n',
        "proto/wire/wire.proto": "",
        "proto/wire/codec.cpp": '#include <zstd.h>\n#include "algorithms/gd.h"\n#include "proto/wire/wire.pb.h"\n',
        "storage/disk.cpp": "#include <fstream>\n",
        "fl_server/net/loop.cpp": '#include <thread>\n#include <asio.hpp>\n#include "algorithms/gd.h"\n',
        "python/core/run.cpp": '#include <pybind11/pybind11.h>\n#include "gradwire/oracle.h"\n#include "python/core/run.h"\n',
        "python/core/run.h": "#pragma once\n#include <pybind11/pybind11.h>\n",
        "docs/good.md": "See `include/gradwire/oracle.h`, `results/demo/plot.svg`, `a/b.c` and `lib/x.a`.\n",
        "tests/gd_test.cpp": '#include <gtest/gtest.h>\n#include "algorithms/gd.h"\n',
    }
    planted = [
        ({"engine/bad.h": '#pragma once\n#include "compressors/topk.h"\n'}, "engine/bad.h:2: engine may not include"),
        ({"algorithms/bad.h": '#pragma once\n\n#include "engine/tape/eager_tape.h"\n', "engine/tape/eager_tape.h": "#pragma once\n"},
         "algorithms/bad.h:3: algorithms may not include"),
        ({"engine/bad.h": '#pragma once\n#include "gradwire/train.h"\n', "include/gradwire/train.h": "#pragma once\n"},
         'engine/bad.h:2: engine may not include "include/gradwire/train.h"'),
        ({"include/gradwire/oracle.h": '#pragma once\n#include "compressors/topk.h"\n'},
         "include/gradwire/oracle.h:2: engine may not include"),
        ({"fl_client/bad.cpp": '#include "fl_server/l.h"\n', "fl_server/l.h": "#pragma once\n"},
         "fl_client/bad.cpp:1: fl_client may not include"),
        # An include of a folder that is below it in MAY_INCLUDE, and a cycle of two rooms.
        ({"proto/wire/bad.cpp": '#include "storage/journal.h"\n', "storage/journal.h": "#pragma once\n"},
         "proto/wire/bad.cpp:1: proto/wire may not include"),
        ({"rounds/a.h": '#pragma once\n#include "proto/wire/b.h"\n', "proto/wire/b.h": '#pragma once\n#include "rounds/a.h"\n'},
         "rounds/a.h:2: rounds may not include"),
        ({"compressors/bad.cpp": "#include <thread>\n"}, "compressors/bad.cpp:1: compressors is pure"),
        ({"engine/bad.cpp": "#include <fstream>\n"}, "engine/bad.cpp:1: engine is pure"),
        ({"proto/wire/bad.cpp": "#include <chrono>\n"}, "proto/wire/bad.cpp:1: proto/wire is pure"),
        ({"algorithms/bad.cpp": "#include <asio/io_context.hpp>\n"}, "algorithms/bad.cpp:1: algorithms uses only the standard"),
        ({"engine/bad.cpp": '#include "proto/wire/wire.pb.h"\n'}, "engine/bad.cpp:1: engine may not include"),
        ({"fl_server/bad.h": "#pragma once\n#include <spdlog/spdlog.h>\n"}, "fl_server/bad.h:2: a header includes third"),
        ({"proto/wire/bad.h": '#pragma once\n#include "proto/wire/wire.pb.h"\n'}, "proto/wire/bad.h:2: a header includes generated"),
        ({"python/core/bad.cpp": '#include "algorithms/gd.h"\n'}, "python/core/bad.cpp:1: python includes only public headers"),
        ({"engine/attic/bad.h": "#pragma once\n"}, "engine/attic/bad.h:1: folder engine/attic is new"),
        ({"tests/bad.h": "int x;\n"}, "tests/bad.h:1: a header without #pragma once"),
        ({"tests/bad.cpp": '#include "gd.h"\n'}, 'tests/bad.cpp:1: "gd.h" is not a file of this tree'),
        ({"tests/bad.cpp": "\n" * (LINES_FAIL + 1)}, f"tests/bad.cpp:{LINES_FAIL + 1}: {LINES_FAIL + 1} lines"),
        ({"engine/a.h": '#pragma once\n#include "engine/b.h"\n', "engine/b.h": '#pragma once\n#include "engine/a.h"\n'},
         "engine/b.h:2: include cycle: engine/a.h -> engine/b.h -> engine/a.h"),
        ({"docs/bad.md": "\nSee `engine/none.h`.\n"}, "docs/bad.md:2: names engine/none.h, which does not exist"),
    ]
    failures = 0
    for k, (folder, allowed) in enumerate(MAY_INCLUDE.items()):
        for upwards in set(allowed) - set(list(MAY_INCLUDE)[:k]):
            failures += 1
            print(f"self-test: MAY_INCLUDE lets {folder} include {upwards}, which is below it")
        # A file also includes what its headers include.
        for seen in allowed:
            for further in set(MAY_INCLUDE[seen]) - set(allowed):
                failures += 1
                print(f"self-test: MAY_INCLUDE lets {folder} include {seen}, and so {further}, which it does not name")
    for extra, expected in [({}, None)] + planted:
        with tree_of({**clean, **extra}) as tree:
            tree.check()
            if (not expected and tree.errors) or (expected and not any(e.startswith(expected) for e in tree.errors)):
                failures += 1
                print(f"self-test: expected {expected!r}, found {tree.errors}")
    print(f"check_layers: {len(planted)} planted violations, {failures} failures")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    tree = Tree(root)
    if not tree.includes:
        print(f"check_layers: no sources under {root}", file=sys.stderr)
        return 2
    tree.check()
    for line in sorted(tree.errors) + tree.warnings:
        print(line)
    print(f"check_layers: {len(tree.includes)} files, {len(tree.errors)} errors, {len(tree.warnings)} warnings")
    return 1 if tree.errors else 0


if __name__ == "__main__":
    sys.exit(main())
