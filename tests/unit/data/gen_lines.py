"""Writes line tables of this very interpreter and the lines they mean: data for test_linetables.c.

    for v in 3.8 3.9 3.10 3.11 3.12 3.13; do python$v gen_lines.py > lines_$v.txt; done

The truth does not come from the table's own bytes by our reading of them, but from the interpreter:
dis.findlinestarts() up to 3.9, code.co_lines() from 3.10 on. For each code object two lines:

    code NAME FIRST_LINE TABLE_IN_HEX
    lines START:END:LINE …             (byte offsets; LINE 0: these instructions have none)
"""
import argparse
import ast
import dataclasses
import dis
import json.decoder
import sys
import tokenize
import types

# A call whose arguments stand far below it: the line jumps by more than a signed byte, both ways.
GAPS = [5, 126, 127, 128, 129, 254, 255, 256, 300, 1000]

SOURCE = """
def gaps():
    return print(%s
    )

def loops(n):
    total = 0
    for i in range(
        n
    ):
        while (total <
               i):
            total += (
                i *
                2
            )
            if total > 10: break
        else:
            continue
    return [x
            for x in range(total)
            if x]

def handlers(path):
    try:
        with open(path) as f, \\\\
             open(path) as g:
            yield from (
                line
                for line in f
            )
    except OSError as error:
        raise ValueError(
            path
        ) from error
    finally:
        del path

async def waits(a, b):
    async with a as x:
        async for y in b:
            await x(
                y
            )

class Thing(
    object
):
    field: int = 1
    def method(self, x=lambda: (
            1)):
        def inner():
            nonlocal x
            x = (self
                 .field)
        return inner

""" % ",".join("\n" * gap + "    f(%d)" % gap for gap in GAPS)

STDLIB = [argparse.ArgumentParser._parse_known_args, ast.dump, dataclasses._process_class,
          json.decoder.py_scanstring, tokenize.TokenInfo.__repr__, dis.findlinestarts]


def all_code(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from all_code(const)


def true_lines(code):
    """[(start, end, line)] that cover every instruction."""
    if sys.version_info >= (3, 10):
        return [(start, end, line or 0) for start, end, line in code.co_lines() if end > start]
    starts = list(dis.findlinestarts(code))
    ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
    return [(start, end, line) for (start, line), end in zip(starts, ends)]


def main():
    codes = list(all_code(compile(SOURCE.replace("\\\\", "\\"), "source.py", "exec")))
    codes += list(all_code(compile("\n" * 70000 + "x = 1\n\n\ny = 2", "far.py", "exec")))
    for function in STDLIB:
        codes += all_code(function.__code__)
    print("# CPython %d.%d.%d, by gen_lines.py" % sys.version_info[:3])
    for code in codes:
        table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
        print("code", code.co_name, code.co_firstlineno, table.hex() or "-")
        print("lines", *("%d:%d:%d" % line for line in true_lines(code)))


main()
