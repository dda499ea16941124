#!/usr/bin/env python3
"""One source for `--help` and the man pages: docs/man/*.md.

    gen_help.py --c OUT.c IN.md...      C file with cmd_help_text()
    gen_help.py --man OUT.1 IN.md       roff man page

The markdown is a small subset, and anything else is an error rather than a surprise:

    # pyrometer-run(1)            the title
    ## OPTIONS                    a section
    paragraph text                may span lines; **bold**, *italic* and `code` inside
        literal text              indented by four: kept as it is
    - **--limit** N               a list item; its text is indented by two

`--help` shows the sections in HELP_SECTIONS, at most 80 columns wide; the man page shows all.
Needs Python 3.8 and nothing else.
"""

import argparse
import pathlib
import re
import sys
import textwrap

WIDTH = 80
HELP_SECTIONS = {
    "SYNOPSIS": "Usage",
    "ARGUMENTS": "Arguments",
    "OPTIONS": "Options",
    "NAMING A RUN": "Naming a run",
    "EXAMPLES": "Examples",
}
INLINE = re.compile(r"\*\*(?P<bold>[^*]+)\*\*|\*(?P<italic>[^*]+)\*|`(?P<code>[^`]+)`")


class Page:
    """A parsed page: name ("pyrometer-run"), summary, and sections of blocks.

    A block is ("text", line), ("literal", [lines]) or ("item", term, [paragraphs])."""

    def __init__(self, path):
        self.path = path
        self.name = pathlib.Path(path).stem
        self.sections = {}
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        if not lines or lines[0] != f"# {self.name}(1)":
            self.fail(1, f"must begin with '# {self.name}(1)'")
        self.parse(lines)
        self.summary = self.read_summary()

    def fail(self, number, what):
        sys.exit(f"{self.path}:{number}: {what}")

    def parse(self, lines):
        blocks, open_text = None, None  # open_text: the list that takes continuation lines
        for number, line in enumerate(lines[1:], 2):
            if len(line) != len(line.rstrip()) or "\t" in line:
                self.fail(number, "trailing blanks or a tab")
            if line.startswith("## "):
                blocks = self.sections.setdefault(line[3:], [])
                open_text = None
            elif not line:
                open_text = self.end_paragraph(blocks, open_text)
            elif blocks is None or line.startswith("#"):
                self.fail(number, "text before the first '## SECTION', or another kind of heading")
            else:
                open_text = self.parse_line(number, line, blocks, open_text)
        for section, found in self.sections.items():
            self.sections[section] = [self.close(block) for block in found]

    @staticmethod
    def end_paragraph(blocks, open_text):
        last = blocks[-1] if blocks else None
        if last and last[0] == "literal":
            last[1].append("")
            return None
        if last and last[0] == "item" and open_text is not None:
            last[2].append([])
            return last[2]
        return None

    def parse_line(self, number, line, blocks, open_text):
        last = blocks[-1] if blocks else None
        if line.startswith("- "):
            blocks.append(("item", line[2:], [[]]))
            return blocks[-1][2]
        if line.startswith("    ") and not (last and last[0] == "item" and open_text):
            if not (last and last[0] == "literal"):
                blocks.append(("literal", []))
            blocks[-1][1].append(line[4:])
            return None
        if line.startswith("  ") and last and last[0] == "item" and open_text is not None:
            last[2][-1].append(line.strip())
            return last[2]
        if line.startswith(" "):
            self.fail(number, "odd indentation: four for literal text, two for a list item's text")
        if last and last[0] == "text" and open_text is not None:
            last[1].append(line)
            return open_text
        blocks.append(("text", [line]))
        return blocks[-1][1]

    @staticmethod
    def close(block):
        if block[0] == "text":
            return ("text", " ".join(block[1]))
        if block[0] == "literal":
            lines = block[1]
            while lines and not lines[-1]:
                lines.pop()
            return ("literal", lines)
        return ("item", block[1], [" ".join(p) for p in block[2] if p])

    def read_summary(self):
        blocks = self.sections.get("NAME", [])
        if len(blocks) == 1 and blocks[0][0] == "text":
            name, dash, summary = blocks[0][1].partition(" - ")
            if dash and name == self.name:
                return summary
        return self.fail(1, f"section NAME must be '{self.name} - summary'")


# --- plain text ---


def plain(text):
    return INLINE.sub(lambda m: m.group(m.lastgroup), text)


def wrap(text, indent):
    return textwrap.wrap(
        plain(text),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_block(block):
    if block[0] == "text":
        return wrap(block[1], 2) + [""]
    if block[0] == "literal":
        return ["  " + line if line else "" for line in block[1]] + [""]
    lines = ["  " + plain(block[1])]
    for number, paragraph in enumerate(block[2]):
        lines += ([""] if number else []) + wrap(paragraph, 6)
    return lines


def render_help(page):
    command = page.name.replace("pyrometer-", "pyrometer ", 1)
    # the overview of all commands has a head of its own, written from the table of commands
    lines = [] if command == "pyrometer" else [f"{command}: {page.summary}", ""]
    for section, heading in HELP_SECTIONS.items():
        if section not in page.sections:
            continue
        lines.append(heading + ":")
        for block in page.sections[section]:
            lines += render_block(block)
        if lines[-1]:
            lines.append("")
    while lines and not lines[-1]:
        lines.pop()
    for line in lines:
        if len(line) > WIDTH:
            sys.exit(f"{page.path}: wider than {WIDTH} columns in --help: {line}")
    return lines


def c_literal(line):
    out = []
    for char in line:
        if char in '"\\':
            out.append("\\" + char)
        elif char == "?":
            out.append("\\?")  # no trigraphs by accident
        elif char.isprintable():
            out.append(char)
        else:
            sys.exit(f"a character that is not printable: {line!r}")
    return '"' + "".join(out) + '\\n"'


def render_c(pages):
    out = [
        "/* Generated by tools/gen_help.py from docs/man: edit there. */",
        '#include "cmd/cmd.h"',
        "",
        "#include <string.h>",
        "",
        "static const struct {",
        "    const char *name;",
        "    const char *text;",
        "} texts[] = {",
    ]
    for page in pages:
        key = page.name.replace("pyrometer-", "", 1)
        out.append(f'    {{"{key}",')
        literals = ["     " + c_literal(line) for line in render_help(page)]
        out += literals[:-1] + [literals[-1] + "},"]
    out += [
        "};",
        "",
        "const char *cmd_help_text(const char *name)",
        "{",
        "    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {",
        "        if (!strcmp(texts[i].name, name))",
        "            return texts[i].text;",
        "    }",
        "    return NULL;",
        "}",
        "",
    ]
    return "\n".join(out)


# --- roff ---


def roff_escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")


def roff_line(text):
    """A line of text that roff will not take for a request."""
    return "\\&" + text if text[:1] in (".", "'") else text


def roff_inline(text):
    out, at = [], 0
    for m in INLINE.finditer(text):
        font = {"bold": "\\fB", "italic": "\\fI", "code": "\\fB"}[m.lastgroup]
        out += [roff_escape(text[at : m.start()]), font, roff_escape(m.group(m.lastgroup)), "\\fR"]
        at = m.end()
    return roff_line("".join(out) + roff_escape(text[at:]))


def roff_block(block):
    if block[0] == "text":
        return [".PP", roff_inline(block[1])]
    if block[0] == "literal":
        literal = [roff_line(roff_escape(line)) for line in block[1]]
        return [".PP", ".RS 4", ".nf"] + literal + [".fi", ".RE"]
    out = [".TP", roff_inline(block[1])]
    for number, paragraph in enumerate(block[2]):
        out += ([".IP"] if number else []) + [roff_inline(paragraph)]
    return out


def render_man(page):
    out = [
        f'.\\" Generated by tools/gen_help.py from docs/man/{page.name}.md: edit there.',
        f'.TH {roff_escape(page.name.upper())} 1 "" "Pyrometer" "Pyrometer manual"',
    ]
    for section, blocks in page.sections.items():
        out.append(f'.SH "{roff_escape(section)}"')
        for block in blocks:
            out += roff_block(block)
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--c", metavar="OUT.c", help="write the C file with every help text")
    target.add_argument("--man", metavar="OUT.1", help="write one man page")
    parser.add_argument("pages", nargs="+", metavar="IN.md")
    args = parser.parse_args()
    pages = [Page(path) for path in sorted(args.pages)]
    if args.man and len(pages) != 1:
        parser.error("--man takes one page")
    text = render_c(pages) if args.c else render_man(pages[0])
    pathlib.Path(args.c or args.man).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
