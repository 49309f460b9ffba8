#!/usr/bin/env python3
"""Checks that each file includes what it uses: the build hides it where several files are compiled together and common
headers are precompiled (GRADWIRE_UNITY, GRADWIRE_PRECOMPILE).

    tools/check_names.py [ROOT]        prints FILE:LINE: message lines; exit code 1 if there is an error
    tools/check_names.py --self-test   plants one violation of each kind and expects each to be found

A file sees what it includes itself or through headers of this tree. Checked: names that a header of this tree declares at the
scope of a namespace; std::NAME; names of other libraries by their prefixes. This reads text and knows no types: a name that the
file declares itself, or that any header it sees mentions, counts as seen. Also checked: that a .cpp's own constants have other
names than those of headers (a file that is compiled with it could take the one for the other), and that every precompiled header
is in STANDARD_NAMES.
"""
import collections
import pathlib
import re
import sys

from check_layers import Tree, room_of, tree_of

# What says that a file uses a header of the standard library; of "a|b" each gives the names.
STANDARD_NAMES = {header: re.compile(rf"\bstd::(?:{names})") for header, names in {
    "algorithm": r"(?:ranges::)?(?:min|max|minmax|clamp|(?:stable_|partial_|is_)?sort|nth_element|copy(?:_n)?|fill(?:_n)?|find(?:_if)?|"
                 r"count(?:_if)?|any_of|all_of|none_of|equal|lower_bound|upper_bound|binary_search|reverse|rotate|transform|"
                 r"remove_if|unique|(?:max|min)_element|replace|generate|merge)\(",
    "array": r"(?:array|to_array)\b",
    "atomic": r"(?:atomic\w*|memory_order\w*)\b",
    "bit": r"(?:bit_cast|count[lr]_(?:zero|one)|popcount|has_single_bit|bit_(?:width|ceil|floor)|endian|rot[lr])\b",
    "charconv": r"(?:from|to)_chars\b",
    "chrono": r"chrono\b",
    "cmath": r"(?:sqrt|pow|exp|expm1|log|log1p|log2|floor|ceil|round|lround|fabs|hypot|tanh|isfinite|isnan|isinf|fma|fmod|"
             r"ldexp|frexp|cbrt|nextafter|signbit|erf|trunc)\(",
    "condition_variable": r"condition_variable\w*",
    "csignal|signal.h": r"(?:signal|raise|sig_atomic_t)\b",
    "cstdio": r"(?:FILE|fopen|fclose|fread|fwrite|fseek|ftell|fputs|fflush|snprintf|printf|fprintf|rename|remove)\b(?!_)",
    "cstdlib": r"(?:getenv|abort|exit|_Exit|strto\w+|atoi|malloc|free|aligned_alloc)\b",
    "cstring": r"(?:memcpy|memcmp|memmove|memset|memchr|strlen|strcmp|strerror)\b",
    "deque": r"deque\b",
    "filesystem": r"filesystem\b",
    "fstream": r"[io]?fstream\b",
    "functional": r"(?:function|less|greater|plus|hash|reference_wrapper|ref|cref|bind)\b",
    "future": r"(?:future|promise|packaged_task|async)\b",
    "iostream": r"(?:cout|cerr|clog|cin)\b",
    "limits": r"numeric_limits\b",
    "list": r"list\b",
    "map": r"(?:multi)?map\b",
    "memory": r"(?:unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this)\b",
    "mutex": r"(?:(?:recursive_)?mutex|lock_guard|unique_lock|scoped_lock|once_flag|call_once)\b",
    "numbers": r"numbers\b",
    "numeric": r"(?:accumulate|iota|gcd|lcm|inner_product|partial_sum)\b",
    "optional": r"(?:optional|nullopt)\b",
    "queue": r"(?:priority_)?queue\b",
    "random": r"(?:mt19937\w*|random_device|\w+_distribution)\b",
    "set": r"(?:multi)?set\b",
    "span": r"span\b",
    "sstream": r"[io]?stringstream\b",
    "stdexcept": r"(?:runtime_error|logic_error|invalid_argument|out_of_range|length_error|domain_error|overflow_error)\b",
    "string": r"(?:string|to_string|stod|stoi|stoull|stoul|getline)\b",
    "string|string_view": r"string_view\b",
    "system_error|filesystem|charconv": r"(?:error_code|system_error|errc|generic_category|system_category)\b",
    "thread": r"(?:jthread|thread|this_thread)\b",
    "tuple": r"(?:tuple|tie|make_tuple|apply)\b",
    "unordered_map": r"unordered_(?:multi)?map\b",
    "unordered_set": r"unordered_(?:multi)?set\b",
    "variant": r"(?:variant|visit|get_if|holds_alternative|monostate)\b",
    "vector": r"vector\b",
}.items()}
# Of the other libraries: what says that a file uses one, and how its headers' names begin.
LIBRARY_NAMES = {header: re.compile(names) for header, names in {
    "asio": r"\basio::", "CLI/": r"\bCLI::", "curl/": r"\bcurl_\w+\(", "google/": r"\bgoogle::", "microhttpd": r"\bMHD_",
    "mpi": r"\bMPI_", "nlohmann/": r"\bnlohmann::", "openssl/|asio/ssl/": r"\b(?:EVP|SSL|X509|BIO|PEM|RAND|HMAC)_\w+",
    "spdlog/": r"\bspdlog::", "sqlite3": r"\bsqlite3_", "toml++/": r"\btoml::", "zlib": r"\bgz\w+\(", "zstd": r"\bZSTD_",
}.items()}
# What a header that protoc writes includes.
GENERATED = {"algorithm", "functional", "google/", "map", "memory", "string", "vector"}

NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
UNLESS_DEFINED = re.compile(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)", re.M)
CHANGE_OF_MACRO = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|[^\s\w]|\d[\w.']*|\n")
ENUMERATION = re.compile(r"\benum\b[^{};]*\{([^}]*)\}")
CONSTANT = re.compile(r"k[A-Z]")
KEYWORDS = set("""alignas auto bool break case catch char class concept const consteval constexpr constinit continue decltype default
delete do double else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept nullptr
operator override private protected public requires return short signed sizeof static static_assert struct switch template this
thread_local throw true try typedef typename union unsigned using virtual void volatile while""".split())
# A name after one of these is used, not declared.
BEFORE_A_USE = {"return", "case", "throw", "new", "else", "typename", "const", "constexpr", "requires", "co_return", "goto"}
NAMESPACES = {"gradwire", "bench", "svg"}
# What more headers declare is overloaded for each type, and comes with the type.
MOST_HEADERS = 2
PRECOMPILING = "cmake/gradwire_targets.cmake"


def blank(match):
    """Nothing is left of a comment, quotes of a text; lines stay where they are."""
    return ('""' if match[0][0] in "\"'R" else "") + "\n" * match[0].count("\n")


class Source:
    """One file's tokens, and the names that it declares at the scope of a namespace."""

    def __init__(self, text):
        self.code = NOT_CODE.sub(blank, text)
        self.macros = set(MACRO.findall(self.code))
        self.left_changed = set()  # macros that are not, at the end, what they were at the beginning
        for name in CHANGE_OF_MACRO.findall(self.code):
            self.left_changed ^= {name}
        self.left_changed -= set(UNLESS_DEFINED.findall(self.code))  # the same in all files
        self.code = DIRECTIVE.sub(lambda m: "\n" * m[0].count("\n"), self.code)
        self.tokens, self.line_of, line = [], [], 1
        for token in TOKEN.findall(self.code):
            if token == "\n":
                line += 1
            else:
                self.tokens.append(token)
                self.line_of.append(line)
        self.words = set(self.tokens) | self.macros
        self.constants = {name for body in ENUMERATION.findall(self.code) for name in re.findall(r"\w+", body)}
        self.declared = set(self.macros)
        self.own_constants = {}  # in a namespace without a name; their lines
        self.nameless = []  # for each namespace that is open
        at = 0
        while at < len(self.tokens):
            at = self.declaration(at)

    def declaration(self, at):
        """Notes the name that the declaration from `at` on gives; where the next one begins."""
        t = self.tokens
        if t[at] == "namespace":
            begin = at
            while at < len(t) and t[at] not in ("{", ";"):
                at += 1
            if t[at: at + 1] == ["{"]:
                self.nameless.append(at == begin + 1)
            return at + 1
        if t[at] == "}" and self.nameless:
            self.nameless.pop()
            return at + 1
        name, round_brackets, angles = None, 0, 0
        k = at
        while k < len(t):
            token, before = t[k], t[k - 1] if k else ""
            is_name = before[:1].isidentifier() and before not in KEYWORDS
            outside = round_brackets == 0 and angles == 0
            if name is None and outside:
                if token in ("struct", "class", "enum", "union"):
                    after = k + 1 + (t[k + 1] in ("class", "struct"))
                    name = t[after] if t[after].isidentifier() else None
                elif token in ("using", "concept") and t[k + 2: k + 3] == ["="]:
                    name = t[k + 1]
                elif token in ("(", "=", "{", ";") and is_name and k > at:
                    name = "" if token == "(" and t[k - 2] == "::" else before  # else a member's definition
            if token in "<>":
                angles = max(0, angles + (1 if token == "<" else -1))
            elif token in "()":
                round_brackets += 1 if token == "(" else -1
            elif round_brackets == 0 and token in ("{", ";", "}"):
                break
            k += 1
        if name:
            self.declared.add(name)
            if any(self.nameless) and CONSTANT.match(name) and t[at] != "using":
                self.own_constants[name] = self.line_of[at]
        if k < len(t) and t[k] == "{":
            depth = 0
            while k < len(t):
                depth += (t[k] == "{") - (t[k] == "}")
                if depth == 0:
                    break
                k += 1
        return k + 1

    def declares_inside(self, name):
        """A local variable, a parameter, a member, a constant of an enumeration of this name."""
        if name in self.constants:
            return True
        t = self.tokens
        for k, token in enumerate(t):
            if token != name or k < 2:
                continue
            before, after = t[k - 1], t[k + 1] if k + 1 < len(t) else ""
            if before.isidentifier() and before not in BEFORE_A_USE:
                return True
            if before == "," and after == "=" and CONSTANT.match(name):
                return True
            if before in ("&", "*", ">") and after in ("=", "{", "(", ";", ",", ")", ":"):
                at = k - 2
                while t[at] in ("&", "*"):
                    at -= 1
                of_two = at < k - 2 and t[at] != "auto"  # T&& x, T** x, or a && x(...)
                if t[at] not in BEFORE_A_USE and (t[at].isidentifier() or t[at] == ">") and not (of_two and after == "("):
                    return True
            if not self.is_used_as_function(k) and name[0].islower() and not CONSTANT.match(name):
                return True  # a function is called; this one is also read or written
        return False

    def is_used_as_function(self, k):
        t = self.tokens
        after = t[k + 1: k + 3]
        return t[k - 1] in (".", "->", "::") or after[:1] == ["("] or after[:1] == ["<"] and after[1:] not in (["="], ["<"])


class Names:
    def __init__(self, tree):
        self.tree, self.errors = tree, []
        self.sources = {file: Source("\n".join(lines)) for file, lines in tree.lines.items()}
        self.declared_in = collections.defaultdict(set)
        for file, source in self.sources.items():
            if file.endswith(".h") and room_of(file) != "tests":
                for name in source.declared:
                    self.declared_in[name].add(file)
        self.seen_by = {}

    def seen(self, file):
        """Files of this tree that it includes, and names in <...> that it sees through them; itself among them."""
        if file not in self.seen_by:
            own, foreign = {file}, set()
            for _, quoted, name in self.tree.includes[file]:
                if not quoted:
                    foreign.add(name)
                elif name in self.tree.includes:
                    further, also = self.seen(name)
                    own |= further
                    foreign |= also
                else:
                    foreign |= GENERATED
            self.seen_by[file] = own, foreign
        return self.seen_by[file]

    def check(self):
        self.check_precompiled()
        for file, source in self.sources.items():
            own, foreign = self.seen(file)
            for header, names in STANDARD_NAMES.items():
                if not foreign & set(header.split("|")):
                    self.expect_none(file, names, f"<{header.split('|')[0]}>")
            for header, names in LIBRARY_NAMES.items():
                # A header declares their types itself: it may not include theirs (tools/check_layers.py).
                if file.endswith(".cpp") and not any(f.startswith(tuple(header.split("|"))) for f in foreign):
                    self.expect_none(file, names, f"a header <{header.split('|')[0]}...>")
            if file.endswith(".cpp") and source.left_changed and not self.is_compiled_alone(file):
                self.errors.append(f"{file}:1: leaves {min(source.left_changed)} defined or undefined for the files that are compiled with "
                                   f"it; undefine what it defines, or say SKIP_UNITY_BUILD_INCLUSION in {room_of(file)}/CMakeLists.txt")
            if file.endswith(".cpp") and room_of(file) != "tests":
                for name in source.own_constants.keys() & self.declared_in.keys():
                    self.errors.append(f'{file}:{source.own_constants[name]}: {name} is also a constant of "{min(self.declared_in[name])}"; '
                                       "a file that is compiled with this one could mean either: give it another name")
            if room_of(file) != "tests":  # there a suite has the name of the type that it tests
                self.check_own(file, source, own)

    def check_precompiled(self):
        cmake = self.tree.root / PRECOMPILING
        if not cmake.exists():
            return
        known = {header for headers in STANDARD_NAMES for header in headers.split("|")}
        for k, line in enumerate(cmake.read_text(encoding="utf-8").splitlines()):
            for header in set(re.findall(r"<(\w+)>", line)) - known:
                self.errors.append(f"{PRECOMPILING}:{k + 1}: <{header}> is precompiled; say in STANDARD_NAMES of tools/check_names.py "
                                   "what it gives")

    def is_compiled_alone(self, file):
        """Its room's CMakeLists.txt names it."""
        room, _, name = file.partition("/")
        cmake = self.tree.root / room / "CMakeLists.txt"
        return cmake.exists() and name in cmake.read_text(encoding="utf-8")

    def expect_none(self, file, names, header):
        code = self.sources[file].code
        if match := names.search(code):
            line = code.count("\n", 0, match.start()) + 1
            self.errors.append(f"{file}:{line}: uses {match[0].rstrip('(')} and does not include {header}")

    def sees_messages(self, own):
        return any(name.endswith(".pb.h") for file in own for _, _, name in self.tree.includes[file])

    def check_own(self, file, source, own):
        t = source.tokens
        settled = KEYWORDS | source.declared
        for k, name in enumerate(t):
            headers = self.declared_in.get(name, ())
            if name in settled or not 0 < len(headers) <= MOST_HEADERS:
                continue
            before = t[k - 1] if k else ""
            if before in (".", "->") or (before == "::" and t[k - 2] not in NAMESPACES):
                continue  # a member
            if not (name[0].isupper() or CONSTANT.match(name) or before == "::" or source.is_used_as_function(k)):
                continue
            settled.add(name)
            if any(name in self.sources[other].words for other in own if other != file) or source.declares_inside(name):
                continue
            if name[0].isupper() and self.sees_messages(own):
                continue  # one of them may have this name, too
            self.errors.append(f'{file}:{source.line_of[k]}: uses {name} and does not include "{min(headers)}"')


def self_test():
    clean = {
        "base/stream.h": "#pragma once\n#include <vector>\nnamespace gradwire {\nclass Stream {\n  int next_(int);\n};\nint draw(Stream&);\n"
                         "inline constexpr int kDraws = 3;\n}\n",
        "base/user.cpp": '#include "base/stream.h"\nnamespace gradwire {\nint f(Stream& s) { return draw(s) + kDraws; }\n'
                         "std::vector<int> v;  // std::map\nauto text = \"std::map\";\n}\n",
        "base/member.cpp": "struct A { int draw(int); };\nint A::draw(int k) { return draw(k); }\nint g(A& a) { return a.draw(1); }\n",
        "proto/asio.cpp": "#include <asio/io_context.hpp>\nasio::io_context c;\n",
    }
    planted = [
        ("base/bad.cpp", "namespace gradwire {\nStream* s;\n}\n", 'uses Stream and does not include "base/stream.h"', 2),
        ("base/bad.cpp", "int f(int s) {\n  return gradwire::draw(s);\n}\n", 'uses draw and does not include "base/stream.h"', 2),
        ("base/bad.cpp", "bool f(int a, int b) {\n  return a > 0 && b && draw(a);\n}\n", 'uses draw and does not include "base/stream.h"', 2),
        ("base/bad.cpp", "int f() { return kDraws; }\n", 'uses kDraws and does not include "base/stream.h"', 1),
        ("base/bad.cpp", '#include "base/stream.h"\nstd::vector<int> a;\nstd::string b;\n', "uses std::string and does not include <string>", 3),
        ("base/bad.h", "std::uint8_t a;\nstd::array<int, 2> b;\n", "uses std::array and does not include <array>", 2),
        ("base/bad.cpp", "#define TWO 2\n#undef TWO\n#undef NDEBUG\n", "leaves NDEBUG defined or undefined for the files that are "
         "compiled with it; undefine what it defines, or say SKIP_UNITY_BUILD_INCLUSION in base/CMakeLists.txt", 1),
        ("base/bad.cpp", "namespace gradwire {\nnamespace {\nconstexpr int kDraws = 4;\n}\n}\n", 'kDraws is also a constant of '
         '"base/stream.h"; a file that is compiled with this one could mean either: give it another name', 3),
        (PRECOMPILING, "\ntarget_precompile_headers(a PRIVATE <vector>\n  <valarray>)\n",
         "<valarray> is precompiled; say in STANDARD_NAMES of tools/check_names.py what it gives", 3),
        ("fl_server/bad.cpp", "\nasio::io_context c;\n", "uses asio:: and does not include a header <asio...>", 2),
    ]
    failures = 0
    for name, text, message, line in [("base/none.cpp", "", None, 0)] + planted:
        with tree_of({**clean, name: text}) as tree:
            names = Names(tree)
            names.check()
            if names.errors != ([f"{name}:{line}: {message}"] if message else []):
                failures += 1
                print(f"self-test: expected {message!r}, found {names.errors}")
    print(f"check_names: {len(planted)} planted violations, {failures} failures")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    tree = Tree(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent))
    if not tree.includes:
        print(f"check_names: no sources under {tree.root}", file=sys.stderr)
        return 2
    names = Names(tree)
    names.check()
    for line in sorted(names.errors):
        print(line)
    print(f"check_names: {len(names.sources)} files, {len(names.errors)} errors")
    return 1 if names.errors else 0


if __name__ == "__main__":
    sys.exit(main())
