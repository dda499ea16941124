"""A small web log analyser, with one line in it that deserves to be found.

    pyrometer run python examples/demo.py
    pyrometer report --by line

It makes up a day of a web server's log, parses it, finds the slowest pages and the busiest visitors, and
prints a summary. It takes about three seconds; most of that is one line which asks a list what a set could
answer (look for `visitors` in count_visitors, and try it).
"""
import datetime
import random
import re
import textwrap

PAGES = ["/", "/about", "/search", "/cart", "/checkout", "/login", "/images/logo.png", "/api/items"]
LINE = re.compile(r'(?P<ip>\S+) \[(?P<when>[^]]+)\] "(?P<method>\S+) (?P<page>\S+)" (?P<status>\d+) (?P<ms>[\d.]+)')


def make_log(lines):
    """A day of requests, as text."""
    rng = random.Random(1821)
    start = datetime.datetime(2024, 5, 1)
    out = []
    for i in range(lines):
        when = start + datetime.timedelta(seconds=i * 86400 / lines)
        ip = "10.%d.%d.%d" % (rng.randrange(4), rng.randrange(32), rng.randrange(32))
        page = rng.choice(PAGES)
        ms = rng.lognormvariate(3 if page != "/search" else 5, 0.6)
        out.append('%s [%s] "GET %s" %d %.1f' % (ip, when.isoformat(), page, rng.choice([200, 200, 200, 304, 404]), ms))
    return "\n".join(out)


def parse(text):
    """One dict per request."""
    requests = []
    for line in text.splitlines():
        fields = LINE.match(line).groupdict()
        fields["ms"] = float(fields["ms"])
        fields["when"] = datetime.datetime.fromisoformat(fields["when"])
        requests.append(fields)
    return requests


def count_visitors(requests):
    """The distinct addresses, in the order of their first visit."""
    visitors = []
    for request in requests:
        if request["ip"] not in visitors:  # the hot line: a list is searched from its start
            visitors.append(request["ip"])
    return visitors


def percentile(values, percent):
    return sorted(values)[int(len(values) * percent / 100)]


def slowest_pages(requests):
    by_page = {}
    for request in requests:
        by_page.setdefault(request["page"], []).append(request["ms"])
    rows = [(page, len(ms), percentile(ms, 50), percentile(ms, 95)) for page, ms in by_page.items()]
    return sorted(rows, key=lambda row: -row[3])


def render(requests, visitors, pages):
    yield "%d requests from %d visitors" % (len(requests), len(visitors))
    yield ""
    yield "%-20s %8s %10s %10s" % ("page", "requests", "median ms", "95 % ms")
    for page, count, median, high in pages:
        yield "%-20s %8d %10.1f %10.1f" % (page, count, median, high)
    yield ""
    yield from textwrap.wrap("The first visitors were " + ", ".join(visitors[:12]) + ".", 72)


def main():
    requests = parse(make_log(45000))
    visitors = count_visitors(requests)
    pages = slowest_pages(requests)
    print("\n".join(render(requests, visitors, pages)))


if __name__ == "__main__":
    main()
