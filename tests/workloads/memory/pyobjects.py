"""Python objects of known size, made by operations that make nothing else. BYTES and TEXT are what an empty object takes,
and what is above 512 bytes comes from malloc in heap mode."""
import sys

BYTES, TEXT = sys.getsizeof(b""), sys.getsizeof("")
one, letter = b"x", "x"
keep = [None] * 100


def byte_strings(n, few):
    a = one * n                                 #: object=[BYTES + 1000], heap=dict(malloc=[BYTES + 1000])
    a = one * few                               #: object=[BYTES + 100]
    b = a + a                                   #: object=[BYTES + 200]
    keep[0] = b + b                             #: object=[BYTES + 400], live=[BYTES + 400]
    for i in range(50):
        keep[i + 10] = one * n                  #: object=[BYTES + 1000] * 50, live=[BYTES + 1000] * 50, heap=dict(malloc=[BYTES + 1000] * 50, live=[BYTES + 1000] * 50)


def texts(n, few):
    a = letter * n                              #: object=[TEXT + 1000], heap=dict(malloc=[TEXT + 1000])
    a = letter * few                            #: object=[TEXT + 100]
    b = a + a                                   #: object=[TEXT + 200]
    keep[1] = b + a                             #: object=[TEXT + 300], live=[TEXT + 300]


def grown(n):
    """A text that grows: a realloc each time, or a new one."""
    a = letter * n                              #: object=[TEXT + 1000], heap=dict(malloc=[TEXT + 1000])
    for _ in range(20):
        a += letter                             #: object=[TEXT + 1000 + i for i in range(1, 21)], live=[TEXT + 1020], heap=dict(ANY=[TEXT + 1000 + i for i in range(1, 21)], live=[TEXT + 1020])
    keep[2] = a


def main():
    byte_strings(1000, 100)
    texts(1000, 100)
    grown(1000)


if __name__ == "__main__":
    main()
