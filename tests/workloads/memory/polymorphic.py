"""One function, many callers; many functions, one caller: nothing goes to the wrong line. The stacks look alike on purpose:
a shortcut that compares too little of them is seen here."""
from truth import free, malloc


def work(n):
    free(malloc(n))                             #: malloc=[100, 200] * 40 + [300] * 20 + [400] * 20 + [1, 2, 3] * 10


def through(n):
    work(n)                                     #> malloc=[100, 200] * 40 + [300] * 20 + [400] * 20 + [1, 2, 3] * 10


def left():
    for _ in range(40):
        through(100)                            #> malloc=[100] * 40
        through(200)                            #> malloc=[200] * 40


def right(n):
    through(n)                                  #> malloc=[300] * 20 + [400] * 20


def make(n):
    def closure():
        work_of(n)                              #> malloc=[1000] * 15 + [2000] * 15
    return closure


def work_of(n):
    free(malloc(n))                             #: malloc=[1000] * 15 + [2000] * 15


class A:
    def method(self):
        free(malloc(31))                        #: malloc=[31] * 25


class B:
    def method(self):
        free(malloc(32))                        #: malloc=[32] * 25


def dispatch(thing):
    thing.method()                              #> malloc=[31, 32] * 25


def main():
    left()
    for i in range(40):
        if i % 2:
            right(300)                          #> malloc=[300] * 20
        else:
            right(400)                          #> malloc=[400] * 20
    f, g = make(1000), make(2000)
    for _ in range(15):
        f()                                     #> malloc=[1000] * 15
        g()                                     #> malloc=[2000] * 15
    a, b = A(), B()
    for _ in range(25):
        dispatch(a)                             #> malloc=[31] * 25
        dispatch(b)                             #> malloc=[32] * 25
    for _ in range(10):
        through(1); through(2); through(3)      #> malloc=[1, 2, 3] * 10


if __name__ == "__main__":
    main()
