"""A template engine at work: Jinja2 compiles and renders a page with inheritance, macros and filters. Prints seconds.

    template.py ROUNDS [PARTS]      does it all so many times, and prints the CPU time of each
"""
import sys
import time

import jinja2

PAGES = {
    "base.html": "<html><head><title>{% block title %}{% endblock %}</title></head>"
                 "<body>{% block body %}{% endblock %}</body></html>",
    "cells.html": "{% macro cell(value, kind='plain') %}<td class=\"{{ kind }}\">{{ value }}</td>{% endmacro %}",
    "page.html": """{% extends "base.html" %}{% from "cells.html" import cell %}
{% block title %}{{ title|title }} &amp; {{ rows|length }} rows{% endblock %}
{% block body %}<table>
{% for row in rows if row.shown %}<tr>
  {{ cell(loop.index, "number") }}{{ cell(row.name|upper|replace("_", " ")) }}
  {{ cell("%.2f"|format(row.price * row.count), "odd" if loop.index is odd else "even") }}
  {% for tag in row.tags|sort %}{{ cell(tag|escape) }}{% else %}{{ cell("none") }}{% endfor %}
</tr>{% endfor %}
</table>{{ rows|map(attribute="count")|sum }} of {{ rows|groupby("kind")|length }} kinds{% endblock %}""",
}
COMPILE_EVERY = 10  # rounds: most of the work is rendering, some is lexing, parsing and generating code


def rows():
    return [{"name": "item_%d" % i, "price": 1.5 * i, "count": i % 7, "kind": "kind%d" % (i % 5), "shown": i % 9 != 0,
             "tags": ["<%d>" % (i * k % 11) for k in range(i % 4)]} for i in range(60)]


def work(rounds):
    data, size = rows(), 0
    for n in range(rounds):
        if n % COMPILE_EVERY == 0:
            environment = jinja2.Environment(loader=jinja2.DictLoader(PAGES), autoescape=True)
        size += len(environment.get_template("page.html").render(title="all of it", rows=data))
    return size


begin, cpu = time.perf_counter(), [time.process_time()]
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    work(int(sys.argv[1]))
    cpu.append(time.process_time())
print("%.6f" % (time.perf_counter() - begin))
print("CPU", *["%.6f" % (b - a) for a, b in zip(cpu, cpu[1:])])
