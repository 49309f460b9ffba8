#!/usr/bin/env python3
"""Makes C++ classes from a .proto file: protobuf's accessors on the runtime of proto/lean/message.h.

    proto/lean/generate_messages.py FROM.proto TO_STEM [--namespace NS]
        writes TO_STEM.pb.h and TO_STEM.pb.cc. The classes are in the namespace NS; by default, that of the package
    proto/lean/generate_messages.py --self-test
        makes classes from good and bad files, and expects each fault to be found

It reads the part of proto2 that the files of this tree use. It refuses everything else with FILE:LINE: message, and exit code 1.
"""
import argparse
import pathlib
import re
import sys
import tempfile

# Types of a .proto file: the kind in message.h, and the type in C++.
SINGULAR = {"bool": ("kBool", "bool"), "uint32": ("kUint32", "std::uint32_t"), "fixed32": ("kFixed32", "std::uint32_t"),
            "fixed64": ("kFixed64", "std::uint64_t"), "double": ("kFixed64", "double"), "string": ("kBytes", "std::string"),
            "bytes": ("kBytes", "std::string")}
PACKED = {"fixed32": ("kPackedFixed32", "std::uint32_t"), "double": ("kPackedDouble", "double")}
MOST_SINGULAR = 32  # bits of Message::presence_
MOST_VALUES = 255  # Field::values
MOST_NUMBER = 65535  # Field::number

TOKEN = re.compile(r"//[^\n]*|\s+|(\"[^\"\n]*\"|[A-Za-z_][\w.]*|\d+|[{}=;,\[\]])")


class Refused(Exception):
    """A file that is not in the part of proto2 that is supported."""


class Field:
    def __init__(self, line, label, type_name, name, number, packed):
        self.line, self.label, self.type, self.name, self.number, self.packed = line, label, type_name, name, number, packed
        self.kind = self.cpp = None
        self.bit = self.values = 0


class Parser:
    def __init__(self, path):
        self.path, self.tokens, self.at = path, [], 0
        self.enums, self.messages, self.package = {}, {}, None
        text, position = path.read_text(encoding="utf-8"), 0
        while position < len(text):
            line = text.count("\n", 0, position) + 1
            match = TOKEN.match(text, position)
            if not match:
                self.refuse(line, f"cannot read {text[position:].split()[0]!r}")
            if match[1]:
                self.tokens.append((line, match[1]))
            position = match.end()
        self.tokens.append((text.count("\n") + 1, ""))

    def refuse(self, line, message):
        raise Refused(f"{self.path}:{line}: {message}")

    def line(self):
        return self.tokens[self.at][0]

    def take(self, pattern, what):
        line, token = self.tokens[self.at]
        if not re.fullmatch(pattern, token):
            self.refuse(line, f"{token!r} is not supported here; write {what}")
        self.at += 1
        return token

    def expect(self, *words):
        for word in words:
            self.take(re.escape(word), f"'{word}'")

    def comes(self, word):
        found = self.tokens[self.at][1] == word
        self.at += found
        return found

    def name(self):
        return self.take(r"[A-Za-z]\w*", "a name")

    def number(self):
        return int(self.take(r"\d+", "a number"))

    def file(self):
        self.expect("syntax", "=", '"proto2"', ";", "package")
        self.package = self.take(r"[a-z]\w*(\.[a-z]\w*)*", "a package, such as a.b")
        self.expect(";", "option", "optimize_for", "=", "LITE_RUNTIME", ";")
        while not self.comes(""):
            line = self.line()
            word = self.take("enum|message", "'enum' or 'message'")
            name = self.name()
            if name in self.enums or name in self.messages:
                self.refuse(line, f"{name} is defined twice")
            if word == "enum":
                self.enums[name] = self.enum()
            else:
                self.messages[name] = self.message()
                if not self.messages[name]:
                    self.refuse(line, f"{name}: a message without fields is not supported")
        for fields in self.messages.values():
            self.resolve(fields)
        return self

    def enum(self):
        names = []
        self.expect("{")
        while not self.comes("}"):
            line = self.line()
            names.append(self.name())
            self.expect("=")
            if self.number() != len(names) - 1 or len(names) > MOST_VALUES:
                self.refuse(line, f"{names[-1]}: the values of an enum must be 0, 1, ..., and at most {MOST_VALUES} of them")
            self.expect(";")
        return names

    def message(self):
        fields, reserved = [], []
        self.expect("{")
        while not self.comes("}"):
            if self.comes("reserved"):
                reserved.append(self.number())
                while self.comes(","):
                    reserved.append(self.number())
                self.expect(";")
                continue
            line = self.line()
            label = self.take("optional|repeated", "'optional', 'repeated' or 'reserved'")
            type_name, name = self.name(), self.name()
            self.expect("=")
            number, packed = self.number(), self.comes("[")
            if packed:
                self.expect("packed", "=", "true", "]")
                if label == "optional":
                    self.refuse(line, f"{name}: only a repeated field can be packed")
            self.expect(";")
            fields.append(Field(line, label, type_name, name, number, packed))
        for k, field in enumerate(fields):
            if not 1 <= field.number <= MOST_NUMBER:
                self.refuse(field.line, f"{field.name}: a field number must be 1 to {MOST_NUMBER}")
            if field.number in reserved:
                self.refuse(field.line, f"{field.name}: the field number {field.number} is reserved")
            for other in fields[:k]:
                if field.number == other.number or field.name == other.name:
                    self.refuse(field.line, f"{field.name}: its name or field number is that of line {other.line}")
        return sorted(fields, key=lambda field: field.number)

    def resolve(self, fields):
        """Finds the kinds of the fields of a message, and their presence bits."""
        bits = 0
        for field in fields:
            repeated = field.label == "repeated"
            messages = {name: ("kMessages" if repeated else "kMessage", name) for name in self.messages}
            if field.packed:
                kinds = PACKED
            elif repeated:
                kinds = {"string": ("kStrings", "std::string")} | messages
            else:
                kinds = SINGULAR | {name: ("kEnum", name) for name in self.enums} | messages
            if field.type not in kinds:
                label = field.label + (" packed" if field.packed else "")
                self.refuse(field.line, f"{field.name}: {label} {field.type} is not supported; use one of {', '.join(kinds)}")
            field.kind, field.cpp = kinds[field.type]
            field.values = len(self.enums.get(field.type, ()))
            if not repeated:
                field.bit, bits = bits, bits + 1
                if bits > MOST_SINGULAR:
                    self.refuse(field.line, f"{field.name}: a message may have only {MOST_SINGULAR} optional fields")

    def ordered(self):
        """Returns the names of the messages, each one after those that it contains."""
        done = []

        def visit(name, around):
            for field in self.messages[name]:
                if field.type in around + [name]:
                    self.refuse(field.line, f"{field.name}: a message that contains itself is not supported")
                if field.type in self.messages and field.type not in done:
                    visit(field.type, around + [name])
            if name not in done:
                done.append(name)

        for name in self.messages:
            visit(name, [])
        return done


PRESENCE = """
  bool has_{name}() const {{ return has({bit}); }}"""
ACCESSORS = {
    "number": PRESENCE + """
  {cpp} {name}() const {{ return {name}_; }}
  void set_{name}({cpp} value) {{ mark({bit}), {name}_ = value; }}
  void clear_{name}() {{ unmark({bit}), {name}_ = {{}}; }}
""",
    "kBytes": PRESENCE + """
  const {cpp}& {name}() const {{ return {name}_; }}
  template <class Text>
  void set_{name}(Text&& text) {{ *mutable_{name}() = std::forward<Text>(text); }}
  void set_{name}(const void* data, std::size_t size) {{ mutable_{name}()->assign(static_cast<const char*>(data), size); }}
  {cpp}* mutable_{name}() {{ return mark({bit}), &{name}_; }}
  void clear_{name}() {{ unmark({bit}), {name}_.clear(); }}
""",
    "kMessage": PRESENCE + """
  const {cpp}& {name}() const {{ return {name}_; }}
  {cpp}* mutable_{name}() {{ return mark({bit}), &{name}_; }}
  void clear_{name}() {{ unmark({bit}), {name}_.Clear(); }}
""",
    "packed": """
  int {name}_size() const {{ return {name}_.size(); }}
  {cpp} {name}(int k) const {{ return {name}_[k]; }}
  void set_{name}(int k, {cpp} value) {{ {name}_.Set(k, value); }}
  void add_{name}({cpp} value) {{ {name}_.Add(value); }}
  const {list}& {name}() const {{ return {name}_; }}
  {list}* mutable_{name}() {{ return &{name}_; }}
  void clear_{name}() {{ {name}_.Clear(); }}
""",
    "kMessages": """
  int {name}_size() const {{ return {name}_.size(); }}
  const {cpp}& {name}(int k) const {{ return {name}_[k]; }}
  {cpp}* mutable_{name}(int k) {{ return {name}_.Mutable(k); }}
  {cpp}* add_{name}() {{ return {name}_.Add(); }}
  const {list}& {name}() const {{ return {name}_; }}
  {list}* mutable_{name}() {{ return &{name}_; }}
  void clear_{name}() {{ {name}_.Clear(); }}
""",
}
ACCESSORS["kStrings"] = ACCESSORS["kMessages"] + """  template <class Text>
  void set_{name}(int k, Text&& text) {{ *mutable_{name}(k) = std::forward<Text>(text); }}
  template <class Text>
  void add_{name}(Text&& text) {{ *add_{name}() = std::forward<Text>(text); }}
"""
LISTS = {"kPackedFixed32": "::gradwire::lean::RepeatedField<{cpp}>", "kPackedDouble": "::gradwire::lean::RepeatedField<{cpp}>",
         "kStrings": "::gradwire::lean::RepeatedStrings", "kMessages": "::gradwire::lean::RepeatedMessages<{cpp}>"}

CLASS = """
class {name} final : public ::gradwire::lean::Message {{
 public:
  enum : int {{ {numbers} }};
  std::span<const ::gradwire::lean::Field> Fields() const override;
{accessors}
 private:
{members}
}};
"""
TABLE = """
std::span<const ::gradwire::lean::Field> {name}::Fields() const {{
  using ::gradwire::lean::Kind;
  static constexpr ::gradwire::lean::Field kFields[] = {{
{rows}
  }};
  return kFields;
}}
"""


def class_of(name, fields):
    accessors, members = [], []
    for field in fields:
        list_type = LISTS.get(field.kind, "").format(cpp=field.cpp)
        form = "packed" if field.packed else field.kind if field.kind in ACCESSORS else "number"
        accessors.append(ACCESSORS[form].format(name=field.name, cpp=field.cpp, bit=field.bit, list=list_type))
        members.append(f"  {list_type or field.cpp} {field.name}_{{}};")
    numbers = (f"k{''.join(word.capitalize() for word in field.name.split('_'))}FieldNumber = {field.number}" for field in fields)
    return CLASS.format(name=name, numbers=", ".join(numbers), accessors="".join(accessors), members="\n".join(members))


def table_of(name, fields):
    rows = (f"      {{{field.number}, offsetof({name}, {field.name}_), Kind::{field.kind}, {field.bit}, {field.values}}},"
            for field in fields)
    return TABLE.format(name=name, rows="\n".join(rows))


def generate(path, stem, namespace):
    parser = Parser(path).file()
    namespace = namespace or parser.package.replace(".", "::")
    names = parser.ordered()
    enums = "".join(f"\nenum {name} : int {{ {', '.join(f'{value} = {k}' for k, value in enumerate(values))} }};\n"
                    for name, values in parser.enums.items())
    begin, end = f"\nnamespace {namespace} {{\n", f"\n}}  // namespace {namespace}\n"
    origin = f"// Made from {path.name} by proto/lean/generate_messages.py.\n"
    header = stem.with_name(stem.name + ".pb.h")
    header.write_text(origin + '#pragma once\n\n#include "proto/lean/message.h"\n' + begin + enums +
                      "".join(class_of(name, parser.messages[name]) for name in names) + end, encoding="utf-8")
    # The compilers define offsetof() for classes with a base, but warn about it.
    stem.with_name(stem.name + ".pb.cc").write_text(
        origin + f'#include "{header.name}"\n\n#pragma GCC diagnostic ignored "-Winvalid-offsetof"\n' + begin +
        "".join(table_of(name, parser.messages[name]) for name in names) + end, encoding="utf-8")


HEAD = 'syntax = "proto2";\npackage a.b;\noption optimize_for = LITE_RUNTIME;\n'
# A file after HEAD, and the error that it gives; None if it is good.
CASES = [
    ("enum E { A = 0; B = 1; }\nmessage M {\n  optional E e = 1;  // why\n  reserved 2, 4;\n  repeated N n = 3;\n}\n"
     "message N { optional bool b = 1; }", None),
    ("import \"c.proto\";", "4: 'import' is not supported here; write 'enum' or 'message'"),
    ("/* no */", "4: cannot read '/*'"),
    ("message M {\n  required bool b = 1;\n}", "5: 'required' is not supported here"),
    ("message M {\n  oneof o { bool b = 1; }\n}", "5: 'oneof' is not supported here"),
    ("message M {\n  message N {}\n}", "5: 'message' is not supported here"),
    ("message M { optional int64 i = 1; }", "4: i: optional int64 is not supported; use one of bool,"),
    ("message M { optional a.N n = 1; }", "4: 'a.N' is not supported here; write a name"),
    ("message M { repeated bool b = 1; }", "4: b: repeated bool is not supported; use one of string,"),
    ("message M { repeated double d = 1; }", "4: d: repeated double is not supported"),
    ("message M { repeated fixed64 f = 1 [packed = true]; }",
     "4: f: repeated packed fixed64 is not supported; use one of fixed32, double"),
    ("message M { optional double d = 1 [packed = true]; }", "4: d: only a repeated field can be packed"),
    ("message M { optional bool b = 1 [default = true]; }", "4: 'default' is not supported here; write 'packed'"),
    ("message M { optional bool b = 0; }", "4: b: a field number must be 1 to 65535"),
    ("message M { optional bool b = 65536; }", "4: b: a field number must be 1 to 65535"),
    ("message M { reserved 2; optional bool b = 2; }", "4: b: the field number 2 is reserved"),
    ("message M { reserved 2 to 4; }", "4: 'to' is not supported here"),
    ("message M {\n  optional bool b = 1;\n  optional bool c = 1;\n}", "6: c: its name or field number is that of line 5"),
    ("message M {\n  optional bool b = 1;\n  optional bool b = 2;\n}", "6: b: its name or field number is that of line 5"),
    ("message M { optional N n = 1; }\nmessage N {\n  repeated M m = 1;\n}",
     "6: m: a message that contains itself is not supported"),
    ("message M {" + "".join(f"\n  optional bool b{k} = {k};" for k in range(1, 34)) + "\n}",
     "37: b33: a message may have only 32 optional"),
    ("message M {\n}", "4: M: a message without fields is not supported"),
    ("enum E { A = 1; }", "4: A: the values of an enum must be 0, 1, ..."),
    ("enum E { A = -1; }", "4: cannot read '-1;'"),
    ("enum E { A = 0; }\nmessage E {}", "5: E is defined twice"),
    ("message M { optional bool b = 1;", "4: '' is not supported here; write 'optional'"),
]


def self_test():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "c.proto"
        for text, expected in CASES:
            path.write_text(HEAD + text)
            try:
                generate(path, path.with_name("c"), None)
                found = None
            except Refused as error:
                found = str(error)
            if found != expected and not (found and expected and found.startswith(f"{path}:{expected}")):
                failures += 1
                print(f"self-test: expected {expected!r}, found {found!r}")
    print(f"generate_messages: {len(CASES)} files, {failures} failures")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="FROM.proto", type=pathlib.Path)
    parser.add_argument("stem", metavar="TO_STEM", type=pathlib.Path)
    parser.add_argument("--namespace", metavar="NS")
    arguments = parser.parse_args()
    try:
        generate(arguments.source, arguments.stem, arguments.namespace)
    except (Refused, OSError) as error:
        print(f"generate_messages: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
