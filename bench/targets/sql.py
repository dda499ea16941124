"""A SQL parser at work: sqlglot reads queries, rewrites them and writes them for another database. Prints seconds.

    sql.py ROUNDS [PARTS]      does it all so many times, and prints the CPU time of each
"""
import sys
import time

import sqlglot
from sqlglot.optimizer.simplify import simplify

QUERIES = [
    "SELECT a.id, b.name, SUM(a.price * a.count) AS total FROM orders AS a JOIN customers AS b ON a.customer = b.id "
    "WHERE a.day BETWEEN '2024-01-01' AND '2024-12-31' AND NOT (b.kind = 'test' OR b.kind IS NULL) GROUP BY 1, 2 HAVING SUM(a.count) > 10 ORDER BY total DESC LIMIT 20",
    "WITH recent AS (SELECT * FROM events WHERE at > CURRENT_TIMESTAMP - INTERVAL '7' DAY), ranked AS (SELECT user_id, kind, "
    "ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY at DESC) AS n FROM recent) SELECT kind, COUNT(DISTINCT user_id) FROM ranked WHERE n <= 3 AND 1 = 1 GROUP BY kind",
    "SELECT CASE WHEN x > 0 THEN 'plus' WHEN x < 0 THEN 'minus' ELSE CAST(x AS TEXT) END, COALESCE(y, z, 0) + 2 * 3, SUBSTRING(s, 1, 4) || '…' "
    "FROM t LEFT JOIN u USING (id) WHERE EXISTS (SELECT 1 FROM v WHERE v.id = t.id AND v.tags LIKE '%%new%%') UNION ALL SELECT 'none', NULL, ''",
]


def work(rounds):
    size = 0
    for i in range(rounds):
        for query in QUERIES:
            tree = sqlglot.parse_one(query + " -- %d" % i, read="postgres")
            size += len(simplify(tree.copy()).sql(dialect="bigquery")) + len(tree.sql(dialect="mysql", pretty=True))
    return size


begin, cpu = time.perf_counter(), [time.process_time()]
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    work(int(sys.argv[1]))
    cpu.append(time.process_time())
print("%.6f" % (time.perf_counter() - begin))
print("CPU", *["%.6f" % (b - a) for a, b in zip(cpu, cpu[1:])])
