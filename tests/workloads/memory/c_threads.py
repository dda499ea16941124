"""Threads that C makes: one that never sees Python is charged to no line, one that calls Python to the line it calls."""
from truth import CALLBACK, callback, callback_in_thread, free, in_thread, malloc


def called():
    free(malloc(222))                           #: malloc=[222] * 13
    deeper()                                    #> malloc=[333] * 13


def deeper():
    free(malloc(333))                           #: malloc=[333] * 13


def main():
    back = CALLBACK(called)
    assert in_thread(7, 123456) == 0            #: calloc=ANY, live=ANY
    assert in_thread(4, 123456) == 0            #: calloc=ANY, live=ANY
    assert callback_in_thread(back) == 0        #: calloc=ANY, live=ANY
    callback(back, 12)                          #> malloc=[222, 333] * 12


if __name__ == "__main__":
    main()
