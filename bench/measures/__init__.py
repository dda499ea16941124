"""One module a measure: `measure(bench)` prints its tables, states its musts and returns its figures."""

# In the order in which they run: the quiet ones first, while nothing has warmed the machine.
ALL = ["slowdown", "cost", "rate", "truth", "shares", "startup", "history", "calls", "corrected", "lines", "trace", "timeline", "marks", "left_out", "memory", "memory_bounds", "overhead", "reading", "graph"]
