#!/usr/bin/env python3
"""Prints a header with its plain comments in the form that Doxygen reads:

    // above a declaration           /** ... */
    // after a member                /**< ... */
    // the first lines of the file   /** \\file ... */, also for the class that is named like the file
    // indented lines of these       \\code ... \\endcode
    // anywhere else                 unchanged: in functions, between parameters, headings (// ---- text ----)

Usage: tools/doxygen_comments.py HEADER
"""
import os
import re
import sys

TOKEN = re.compile(r'''"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+'|//.*|[{};,]|\w+|.''')
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>\s*")
SCOPE = re.compile(r"\b(class|struct|union|enum|namespace)\b")
ACCESS = re.compile(r"\s*(public|protected|private)\s*:")
NO_MEMBER = re.compile(rf"\s*($|}}|#(?!define)|static_assert|namespace\b|friend\b|extern template|{ACCESS.pattern})")
HEADING = re.compile(r"\s*// ---- .* ----$")
# TYPE NAME = VALUE, NAME, ...;
NAME = r"\w+(?: = [^,;(){}]+)?"
SEVERAL = re.compile(rf"(\s*)((?:(?:static|const|mutable) )*[\w:]+(?:<[^;]*>)? )({NAME}(?:, {NAME})+);$")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


class Scopes:
    """Follows the braces to find the places of declarations."""

    def __init__(self):
        self.kinds = []  # kinds of the open braces: 'enum', 'scope' (a class or a namespace), 'body'
        self.head = ""  # the declaration in progress

    def declares(self):
        return "body" not in self.kinds

    def between(self):
        """Returns whether a declaration may begin here."""
        return self.declares() and not self.head.strip()

    def read(self, token):
        if token == "{":
            head = TEMPLATE.sub("", self.head)
            self.kinds.append("enum" if re.search(r"\benum\b", head) else "scope" if SCOPE.search(head) else "body")
        elif token == "}" and self.kinds:
            self.kinds.pop()
        elif token != ";" and not (token == "," and self.kinds[-1:] == ["enum"]):
            self.head += token
            if not ACCESS.fullmatch(self.head):
                return
        self.head = ""


def escaped(text):
    text = re.sub('[&<>"]', lambda m: ENTITIES[m.group()], text)
    text = re.sub(r"[\\@#$%]|---?", lambda m: "\\" + m.group(), text)
    # Doxygen ends the summary at a dot before a space. So a dot that does not end a sentence gets a non-breaking space.
    return re.sub(r"(\b(?:e\.g|i\.e|et al)\.|\.\.+(?=\s+[^A-Z\s]))(?: |(?=\n))", r"\1&nbsp;", text)


def prose(lines):
    """Escapes the words of a comment, and marks code in backticks."""
    parts = "\n".join(lines).split("`")
    if len(parts) % 2 == 0:
        return escaped("`".join(parts))
    return "".join(f"<code>{escaped(part)}</code>" if i % 2 else escaped(part) for i, part in enumerate(parts))


def is_indented(lines, i):
    """Returns whether a line is indented. A blank line between two indented lines counts as indented."""
    around = lines[i - 1 : i] + lines[i + 1 : i + 2] if not lines[i] else [lines[i]]
    return len(around) > 0 and all(line.startswith("  ") for line in around)


def text_of(lines):
    """Returns the text of a comment with Doxygen's commands. It has as many lines as before."""
    lines = [re.sub("^ *// ?", "", line).rstrip() for line in lines]
    text, i = "", 0
    while i < len(lines):
        begin, indented = i, is_indented(lines, i)
        while i < len(lines) and is_indented(lines, i) == indented:
            i += 1
        if indented:
            language = ".cpp" if any(line.endswith((";", "{")) for line in lines[begin:i]) else ".unparsed"
            text += f" \\code{{{language}}}\n" + "\n".join(lines[begin:i])
            text += " \\endcode" if i == len(lines) else "\n\\endcode "
        else:
            text += prose(lines[begin:i])
    return text


def member_line(code, lines):
    """Returns the line of a member, followed by its comment."""
    words = " ".join(re.sub("^ *// *", "", line) for line in lines)
    note = f" /**< {prose([words])} */"
    several = SEVERAL.match(code.rstrip())
    if not several:
        return code.rstrip() + note
    indent, kind, members = several.groups()
    members = members.split(", ")
    names = [member.split()[0] for member in members]
    about = [name for name in names if words.startswith(name + ":")] or names
    return indent + " ".join(f"{kind}{member};{note if name in about else ''}" for member, name in zip(members, names))


def comment_end(lines, begin, column):
    """Returns the index after the last comment line that starts in this column, counted from `begin`."""
    while begin < len(lines) and lines[begin].startswith(" " * column + "//"):
        begin += 1
    return begin


def is_named_like(path, lines):
    """Returns whether the lines begin with a class that is named like the file, as Ef21 in ef21.h."""
    declared = re.match(r"(?:class|struct) (\w+)[^;]*{", TEMPLATE.sub("", " ".join(lines[:2])))
    return declared is not None and declared.group(1).lower() == re.sub(r".*/|\.h$|_", "", path)


def converted(lines, path):
    """Returns the converted lines of a header. Each line keeps its number."""
    scopes, out, i = Scopes(), [], 0
    file_comment = lines[: comment_end(lines, 0, 0)]
    if file_comment:
        out = ["/** \\file", text_of(file_comment) + " */"]
        i = len(file_comment) + 1  # The first line stands for #pragma once.
    directive = False
    while i < len(lines):
        line, begin, i = lines[i], i, i + 1
        tokens = TOKEN.findall(line)
        comment = tokens.pop() if tokens and tokens[-1].startswith("//") else None
        code = "".join(tokens)
        if directive or code.startswith("#"):
            directive = line.endswith("\\")
        elif comment and not code.strip():
            if HEADING.match(line):
                out.append(line)
                continue
            i = comment_end(lines, i, len(code))
            if i < len(lines) and scopes.between() and not NO_MEMBER.match(lines[i]):
                out.append(f"{code}/** {text_of(lines[begin:i])} */")
                continue
        else:
            if (file_comment and scopes.between() and is_named_like(path, lines[begin:])
                    and not out[-1].endswith("*/")):
                line = code = f"/** \\copydoc {path} */ {code}"
            member = scopes.declares()
            for token in tokens:
                scopes.read(token)
            if comment and member and scopes.declares() and code.strip() not in ("}", "};"):
                if code.rstrip().endswith("{"):
                    line = f"/** {text_of([comment])} */ {code}"
                elif scopes.between() or scopes.kinds[-1:] == ["enum"]:
                    i = comment_end(lines, i, len(code))
                    line = member_line(code, [comment] + lines[begin + 1 : i])
                    out.append(line + "\n" * (i - begin - 1))
                    continue
        out += [line] + lines[begin + 1 : i]
    return out


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        with open(sys.argv[1], encoding="utf-8") as header:
            text = "\n".join(converted(header.read().split("\n"), os.path.relpath(sys.argv[1], root)))
    except (OSError, ValueError, LookupError) as error:  # Doxygen ignores exit codes, but warns about unknown commands.
        text = f"/** \\file\n\\doxygen_comments_failed {error!r} */\n"
    sys.stdout.buffer.write(text.encode())


if __name__ == "__main__":
    main()
