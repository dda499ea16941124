#!/usr/bin/env python3
"""Writes src/remote/opcodes_table.h: what the instructions of CPython 3.10 and 3.11 are, from their own headers.

    tools/gen_opcodes.py [--headers DIR]... [--check]

Headers are looked for as gen_pylayout does it. --check writes nothing and fails if the file is not what would be written, of whatever
patch releases.
"""
import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "gen_pylayout"))

import gen_pylayout  # noqa: E402

TARGET = ROOT / "src" / "remote" / "opcodes_table.h"
MINORS = (10, 11)

# They move one value about on the interpreter's stack or go elsewhere, and never take longer than that.
MOVES = {"LOAD_FAST", "LOAD_CONST", "LOAD_CLOSURE", "LOAD_DEREF", "NOP", "COPY", "COPY_FREE_VARS", "SWAP", "DUP_TOP", "DUP_TOP_TWO", "ROT_TWO",
         "ROT_THREE", "ROT_FOUR", "IS_OP", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"}
# So do these, unless they free what they replace, or an object has to say whether it is true.
STORES = {"STORE_FAST", "STORE_DEREF", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"}
STORES |= {"POP_JUMP_%s_IF_%s" % (where, what) for where in ("FORWARD", "BACKWARD") for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")}
# Of these 3.11 has quick forms.
ARITHMETIC = {how + what for how in ("BINARY_", "INPLACE_") for what in ("ADD", "SUBTRACT", "MULTIPLY")}
DIVISIONS = {how + what for how in ("BINARY_", "INPLACE_") for what in ("MODULO", "FLOOR_DIVIDE", "TRUE_DIVIDE")}
COMPARISONS = {"COMPARE_OP"}
# 3.11 has one instruction for all operators.
OPERATORS = "BINARY_OP"
OPERATOR_KINDS = {"ARITHMETIC": ["ADD", "SUBTRACT", "MULTIPLY"], "DIVISION": ["REMAINDER", "FLOOR_DIVIDE", "TRUE_DIVIDE"]}
NAMES = {"LOAD_GLOBAL"}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"}
ITEMS = {"BINARY_SUBSCR", "STORE_SUBSCR"}
# A call has one of these, and some of those: what they take is measured as a whole (agent/calibrate.c).
CALLS = {"CALL", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_FUNCTION_EX", "CALL_METHOD"}
OF_CALLS = {"PUSH_NULL", "PRECALL", "KW_NAMES", "POP_TOP", "RESUME", "GEN_START", "RETURN_VALUE"}
KINDS = [("MOVE", MOVES), ("STORE", STORES), ("ARITHMETIC", ARITHMETIC), ("DIVISION", DIVISIONS), ("COMPARISON", COMPARISONS), ("NAME", NAMES), ("ATTRIBUTE", ATTRIBUTES), ("ITEM", ITEMS),
         ("ITERATION", {"FOR_ITER"}), ("CALL", CALLS), ("OF_CALL", OF_CALLS), ("EXTENDED", {"EXTENDED_ARG"})]
# 3.11 counts them, until a code object is quickened (co_warmup).
COUNTED = {"RESUME", "JUMP_BACKWARD"}
LAST = {"RETURN_VALUE", "RAISE_VARARGS", "RERAISE"}
# Ends its block, but what follows runs as often as it does, once less.
GOES_ON = {"FOR_ITER"}


def kind_of(name, operator=""):
    """What an instruction is; `operator` is what the dis module shows for that of 3.11, as "+" or "+="."""
    if name == OPERATORS:
        signs = {"+": "ADD", "-": "SUBTRACT", "*": "MULTIPLY", "%": "REMAINDER", "//": "FLOOR_DIVIDE", "/": "TRUE_DIVIDE"}
        return next((kind for kind, names in OPERATOR_KINDS.items() if signs.get(operator.rstrip("=")) in names), "OTHER")
    return next((kind for kind, names in KINDS if name in names), "OTHER")


def numbers(text):
    return {name: int(value) for name, value in re.findall(r"^#define ([A-Z][A-Z0-9_]*)\s+(\d+)$", text, re.M)
            if name not in ("HAVE_ARGUMENT", "DO_TRACING", "CACHE") and not name.startswith("NB_")}


def bitmap(text, name):
    words = re.search(name + r"\[8\] = \{([^}]*)\}", text).group(1)
    words = [int(w) for w in re.findall(r"(\d+)U", words)]
    return {32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1}


def table(include):
    """[(number, name, kind, jump, caches, takes an operator, is counted)] of one version."""
    text = (include / "opcode.h").read_text()
    inner = include / "internal" / "pycore_opcode.h"
    inner = inner.read_text() if inner.exists() else ""
    tables = inner if "_PyOpcode_Jump" in inner else text
    jumps, relative = bitmap(tables, "_PyOpcode_Jump"), bitmap(tables, "_PyOpcode_RelativeJump")
    caches = {name: int(n) for name, n in re.findall(r"\[(\w+)\] = (\d+),", inner)}
    base = dict(re.findall(r"\[(\w+)\] = ([A-Z]\w+),", inner))
    rows = []
    for special, number in sorted(numbers(text).items(), key=lambda item: item[1]):
        if number > 255:
            continue
        name = base.get(special, special)
        kind = kind_of(name)
        where = numbers(text)[name]
        jump = ("LAST" if name in LAST else "NONE" if where not in jumps else "ABSOLUTE" if where not in relative else
                "BACKWARD" if "BACKWARD" in name else "OVER" if name in GOES_ON else "FORWARD")
        rows.append((number, special, kind, jump, caches.get(name, 0), name == OPERATORS, name in COUNTED))
    return rows


def generate(headers):
    lines = ["/* The instructions of those CPythons that slow each of them down while a profile function is set (opcodes.h).", " *",
             " * Generated by tools/gen_opcodes.py from the headers of CPython %s." %
             ", ".join(".".join(map(str, gen_pylayout.micro_of(headers[m]))) for m in MINORS),
             " * Do not edit: change the generator and run it again. */",
            "#ifndef PYROMETER_REMOTE_OPCODES_TABLE_H", "#define PYROMETER_REMOTE_OPCODES_TABLE_H", "",
            '#include "remote/opcodes.h"', "", "// clang-format off"]
    for minor in MINORS:
        lines.append("static const struct opcode_fact opcodes_3_%d[256] = {" % minor)
        for number, name, kind, jump, caches, operators, counted in table(headers[minor]):
            if (kind, jump, caches) == ("OTHER", "NONE", 0):  # as most are, and what is zero
                continue
            facts = [(".kind = OPCODE_", kind, "OTHER"), (".jump = OPCODE_JUMP_", jump, "NONE"), (".caches = ", str(caches), "0"),
                     (".operators = ", "true" if operators else "", ""), (".counted = ", "true" if counted else "", "")]
            told = ", ".join(field + value for field, value, usual in facts if value != usual)
            lines.append("    [%d] = {%s}, /* %s */" % (number, told, name))
        lines.append("};")
    operators = dict(re.findall(r"^#define NB_(\w+)\s+(\d+)$", (headers[MINORS[-1]] / "opcode.h").read_text(), re.M))
    lines.append("static const uint8_t operator_kinds[%d] = {" % (max(map(int, operators.values())) + 1))
    for kind, names in OPERATOR_KINDS.items():
        for name in (prefix + name for prefix in ("", "INPLACE_") for name in names):
            lines.append("    [%s] = OPCODE_%s, /* %s */" % (operators[name], kind, name))
    lines.append("};")
    lines += ["// clang-format on", "", "#endif"]
    return "\n".join(lines) + "\n"


def instructions(text):
    """The table without the line that says which releases it was made from: no patch release has others."""
    return [line for line in text.splitlines() if "gen_opcodes.py from" not in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headers", action="append", default=[], help="a further folder that contains Python.h")
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args()
    headers = gen_pylayout.find_headers(options.headers)
    missing = [m for m in MINORS if m not in headers]
    if missing:
        sys.exit("gen_opcodes: no headers of CPython %s: give their folder by --headers" % ", ".join("3.%d" % m for m in missing))
    text = generate(headers)
    if not options.check:
        TARGET.write_text(text)
    elif instructions(TARGET.read_text()) != instructions(text):
        sys.exit("gen_opcodes: %s is not what the headers say: run tools/gen_opcodes.py" % TARGET.relative_to(ROOT))


if __name__ == "__main__":
    main()
