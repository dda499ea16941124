"""A job on JSON: reads records, picks and sums, writes the answer; with the standard library's json. Prints seconds.

    json_job.py ROUNDS [PARTS]      does it all so many times, and prints the CPU time of each
"""
import json
import sys
import time


def records():
    return json.dumps([{"id": i, "name": "item_%d" % i, "price": 1.25 * i, "tags": ["t%d" % (i * k % 17) for k in range(i % 5)],
                        "place": {"x": i / 7, "y": -i / 3, "label": "p%d" % (i % 13)}, "note": "text " * (i % 6) or None} for i in range(2000)])


def work(rounds):
    text, size = records(), 0
    for n in range(rounds):
        by_tag, chosen = {}, []
        for record in json.loads(text):
            if record["note"] and record["id"] % 3 == n % 3:
                chosen.append({**record, "near": abs(record["place"]["x"]) < 100})
            for tag in record["tags"]:
                by_tag.setdefault(tag, []).append(record["price"])
        sums = {tag: sum(prices) for tag, prices in sorted(by_tag.items())}
        size += len(json.dumps({"sums": sums, "chosen": chosen}, indent=1))
    return size


begin, cpu = time.perf_counter(), [time.process_time()]
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    work(int(sys.argv[1]))
    cpu.append(time.process_time())
print("%.6f" % (time.perf_counter() - begin))
print("CPU", *["%.6f" % (b - a) for a, b in zip(cpu, cpu[1:])])
