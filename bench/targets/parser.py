"""A parser at work: Lark reads a little language of assignments and lists, and folds its trees. Prints seconds.

    parser.py ROUNDS [PARTS]      does it all so many times, and prints the CPU time of each
"""
import sys
import time

import lark

GRAMMAR = r"""
start: statement*
statement: NAME "=" expression ";"
?expression: term (("+" | "-") term)*
?term: factor (("*" | "/") factor)*
?factor: NUMBER -> number | NAME -> name | STRING -> string | "(" expression ")" | "[" [expression ("," expression)*] "]" -> list
NAME: /[a-z_][a-z_0-9]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
STRING: /"[^"]*"/
COMMENT: /#[^\n]*/
%ignore /\s+/
%ignore COMMENT
"""
STATEMENTS = 25


class Fold(lark.Transformer):
    def number(self, children):
        return float(children[0])

    def name(self, children):
        return len(children[0])

    def list(self, children):
        return [child for child in children if child is not None]

    def expression(self, children):
        return children

    term = statement = start = expression


def text():
    return "\n".join('value_%d = (%d + %d.5 * x) / [a, "text %d", %d - b, []];  # statement %d' % (i, i, i, i, i * 7, i)
                     for i in range(STATEMENTS))


def work(rounds):
    parser, fold, source, found = lark.Lark(GRAMMAR, parser="lalr"), Fold(), text(), 0
    for _ in range(rounds):
        found += len(fold.transform(parser.parse(source)))
    return found


begin, cpu = time.perf_counter(), [time.process_time()]
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    work(int(sys.argv[1]))
    cpu.append(time.process_time())
print("%.6f" % (time.perf_counter() - begin))
print("CPU", *["%.6f" % (b - a) for a, b in zip(cpu, cpu[1:])])
