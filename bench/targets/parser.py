"""A parser at work: Lark reads a little language of assignments and lists, and folds its trees. Prints seconds.

    parser.py ROUNDS
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


begin = time.perf_counter()
work(int(sys.argv[1]))
print("%.6f" % (time.perf_counter() - begin))
