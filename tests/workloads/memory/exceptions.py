"""Exceptions through many frames: what is allocated on the way, in handlers and after, is at its line."""
from truth import free, malloc


def fall(n):
    try:
        free(malloc(100))                       #: malloc=[100] * 30
        if n == 0:
            raise KeyError(n)
        fall(n - 1)                             #> malloc=[100] * 25 + [200] * 25
    finally:
        free(malloc(200))                       #: malloc=[200] * 30


class Context:
    def __enter__(self):
        free(malloc(300))                       #: malloc=[300] * 5

    def __exit__(self, *error):
        free(malloc(301))                       #: malloc=[301] * 5
        return False


def guarded():
    with Context():
        fall(5)


def main():
    for _ in range(5):
        try:
            guarded()                           #> malloc=[100] * 30 + [200] * 30 + [300, 301] * 5
        except KeyError:
            free(malloc(400))                   #: malloc=[400] * 5
        free(malloc(500))                       #: malloc=[500] * 5
    try:
        [][malloc(600)]                         #: malloc=[600], live=[600]
    except IndexError:
        after()                                 #> malloc=[700]
    after()                                     #> malloc=[700]


def after():
    free(malloc(700))                           #: malloc=[700] * 2


if __name__ == "__main__":
    main()
