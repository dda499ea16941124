"""Several threads that allocate at once; blocks that are freed by another thread; addresses that wander between threads."""
import threading

from truth import array, churn, churn_end, empty, fill, free, malloc

THREADS, ROUNDS = 6, 100


def first(ready):
    ready.wait()
    for i in range(ROUNDS):
        free(malloc(100 + i))                   #: malloc=[100 + i for i in range(100)] * 6
        second()                                #> malloc=[64] * 600


def second():
    free(malloc(64))                            #: malloc=[64] * 600


def churning(ready, seed):
    ready.wait()
    churn(2000, seed)                           #: malloc=([100, 116, 132, 148] * 500) * 4, brief=0


def producer(blocks):
    fill(blocks, 500, 200)                      #: malloc=[200] * 500, live=[200] * 100, brief=0


def consumer(blocks):
    empty(blocks, 400)                          #:


def run(*threads):
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def main():
    ready = threading.Barrier(THREADS)
    run(*[threading.Thread(target=first, args=(ready,)) for _ in range(THREADS)])
    ready = threading.Barrier(4)
    run(*[threading.Thread(target=churning, args=(ready, i)) for i in range(4)])
    churn_end()                                 #:
    blocks = array(500)
    run(threading.Thread(target=producer, args=(blocks,)))
    run(threading.Thread(target=consumer, args=(blocks,)))


if __name__ == "__main__":
    main()
