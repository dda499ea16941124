"""Code of every shape: lambdas, comprehensions, class bodies, decorators, special methods, eval; each at its line."""
import functools

from truth import free, malloc


def give(n):
    free(malloc(n))                             #: malloc=ANY


def twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        give(1)                                 #> malloc=[1] * 2
        return f(*args, **kwargs)               #> malloc=[2] * 2
    return wrapper


@twice
def decorated(*args, **kwargs):
    give(2)                                     #> malloc=[2] * 2


class Special:
    free(malloc(3))                             #: malloc=[3]

    def __init__(self):
        give(4)                                 #> malloc=[4] * 2

    def __del__(self):
        give(5)                                 #> malloc=[5] * 2

    def __getattr__(self, name):
        give(6)                                 #> malloc=[6]
        return name

    def __add__(self, other):
        give(7)                                 #> malloc=[7]
        return other

    @property
    def value(self):
        give(8)                                 #> malloc=[8]
        return 8

    def __iter__(self):
        give(9)                                 #> malloc=[9]
        return iter(())

    def __eq__(self, other):
        give(10)                                #> malloc=[10]
        return True

    def __bool__(self):
        give(11)                                #> malloc=[11]
        return True


def main():
    short = lambda n: give(n)                   #> malloc=[20, 21, 22]
    short(20)                                   #> malloc=[20]
    list(map(short, (21, 22)))                  #> malloc=[21, 22]
    [give(n) for n in range(30, 34)]            #> malloc=list(range(30, 34))
    {give(n) for n in range(30, 32)}            #> malloc=[30, 31]
    {n: give(n) for n in range(30, 33)}         #> malloc=[30, 31, 32]
    sorted((3, 1, 2), key=lambda n: give(40) or n)      #> malloc=[40] * 3
    decorated()                                 #> malloc=[1, 2]
    decorated(1, 2, *(3, 4), x=5, **{"y": 6})   #> malloc=[1, 2]
    s = Special()                               #> malloc=[4]
    s.missing                                   #> malloc=[6]
    s + 1                                       #> malloc=[7]
    s.value                                     #> malloc=[8]
    list(s)                                     #> malloc=[9]
    s == 1                                      #> malloc=[10]
    if s:                                       #> malloc=[11]
        pass
    s = None                                    #> malloc=[5]
    Special()                                   #> malloc=[4, 5]
    eval("give(50)")                            #> malloc=[50]
    exec("give(51)\nfor _ in range(3):\n    give(52)\n")         #> malloc=[51] + [52] * 3
    (
        give(60),                               #> malloc=[60]
        give(61)                                #> malloc=[61]
        if True else
        give(62),                               #> malloc=[]
    )
    functools.partial(give, 70)()               #> malloc=[70]
    functools.reduce(lambda a, b: give(b), (1, 71, 72))         #> malloc=[71, 72]
    give(n=80)                                  #> malloc=[80]
    assert give(81) is None, give(82)           #> malloc=[81]
    x = y = give(83); give(84)                  #> malloc=[83, 84]
    return x or y


if __name__ == "__main__":
    main()
