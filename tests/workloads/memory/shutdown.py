"""The end of a program: atexit, objects that die with the interpreter, and C after the interpreter is gone."""
import atexit

from truth import allocate_at_the_end, free, malloc, reserve, summit

kept = reserve()


def last():
    free(malloc(1001))                          #: malloc=[1001]


def deeper():
    free(malloc(1002))                          #: malloc=[1002]


def lately():
    deeper()                                    #> malloc=[1002]


class Dying:
    """What it needs is kept with it: at the end a module's names are taken away."""
    def __init__(self, malloc, free):
        self.malloc, self.free = malloc, free

    def __del__(self):
        self.free(self.malloc(1003))            #: malloc=[1003]


atexit.register(last)
atexit.register(lately)
dying = Dying(malloc, free)
allocate_at_the_end(765432)
summit()
