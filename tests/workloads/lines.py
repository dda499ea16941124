"""Lines of known weight, also inside statements that span several lines.

    lines.py [SECONDS]

Every line with a mark `# hot: NAME` spends nearly all the time of its function; sum over a long list
keeps the interpreter on that line. Prints the marks and their line numbers as JSON.
"""
import json
import sys
import time

VALUES = list(range(20000))


def plain():
    x = 0
    for _ in range(20):
        x += 1
        x += sum(VALUES)  # hot: plain
        x -= 1
    return x


def spread():
    return max(
        0,
        1,
        *[2, 3],
        sum(VALUES) +
        sum(VALUES),  # hot: spread, with the line above
        4,
    )


def long_body():
    x = 0
    if x:




        x = 1





























    x = [
        1,
        2,
    ][1]
    for _ in range(20):
        x += sum(VALUES)  # hot: long_body
    return x


def nested():
    def inner():
        return sum(VALUES)  # hot: inner

    return [
        inner()  # called: nested
        for _ in range(20)
    ]


def main():
    marks = {}
    with open(__file__) as f:
        for number, line in enumerate(f, 1):
            for key in ("# hot: ", "# called: "):
                if key in line and '"' not in line and "`" not in line:
                    marks[line.split(key)[1].split(",")[0].strip()] = number
    end = time.perf_counter() + (float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
    while time.perf_counter() < end:
        plain()
        for _ in range(10):
            spread()
        long_body()
        nested()
    print(json.dumps(marks))


main()
