"""A job in pandas: makes a table, joins, groups, pivots, and takes it through CSV. Prints seconds.

    pandas_job.py ROUNDS [PARTS]      does it all so many times, and prints the CPU time of each
"""
import io
import sys
import time

import numpy
import pandas

ROWS = 20000


def tables(seed):
    dice = numpy.random.default_rng(seed)
    sales = pandas.DataFrame({"shop": dice.integers(0, 50, ROWS), "item": dice.integers(0, 300, ROWS), "count": dice.poisson(3, ROWS),
                              "price": dice.gamma(2.0, 5.0, ROWS), "day": pandas.Timestamp("2024-01-01") + pandas.to_timedelta(dice.integers(0, 365, ROWS), unit="D")})
    items = pandas.DataFrame({"item": numpy.arange(300), "kind": ["kind %d" % (i % 12) for i in range(300)]})
    return sales, items


def work(rounds):
    size = 0
    for n in range(rounds):
        sales, items = tables(n)
        all_of_it = sales.merge(items, on="item")
        all_of_it["worth"] = all_of_it["count"] * all_of_it["price"]
        months = all_of_it.groupby([all_of_it["day"].dt.month, "kind"])["worth"].agg(["sum", "mean", "max"]).reset_index()
        table = months.pivot_table(index="day", columns="kind", values="sum").rolling(3, min_periods=1).mean()
        best = all_of_it.sort_values(["shop", "worth"]).groupby("shop").tail(5)
        best = best.assign(label=best["kind"].str.upper() + "/" + best["item"].astype(str))
        back = pandas.read_csv(io.StringIO(all_of_it.head(4000).to_csv(index=False)))
        size += len(table) + len(best) + len(back)
    return size


begin, cpu = time.perf_counter(), [time.process_time()]
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    work(int(sys.argv[1]))
    cpu.append(time.process_time())
print("%.6f" % (time.perf_counter() - begin))
print("CPU", *["%.6f" % (b - a) for a, b in zip(cpu, cpu[1:])])
