"""Code objects that die, and whose addresses are given to others: each line of each is right.

Every text is compiled under a name of its own, `dying_N`, runs on line 1 + N % 50, allocates N + 1 bytes, and is gone before the next
one is made. The functions in `named_N` do it one level deeper.
"""
from truth import free, malloc

ONCE, DEEP = 400, 200


def give(n):
    free(malloc(n))                             #: malloc=[n + 1 for n in range(400)] + [n + 1 for n in range(200)] * 2


def main():
    for n in range(ONCE):
        exec(compile("\n" * (n % 50) + "give(%d)" % (n + 1), "dying_%d" % n, "exec"), {"give": give})
    for n in range(DEEP):
        space = {"give": give}
        exec(compile("def f(n):\n" + "\n" * (n % 50) + "    give(n)\n", "named_%d" % n, "exec"), space)
        space["f"](n + 1)
        space["f"](n + 1)


if __name__ == "__main__":
    main()
