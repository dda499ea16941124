"""Many blocks of many sizes, for estimates: each line of main() asks for as much as stands behind it. mixture.py [TIMES]"""
import os
import sys

from truth import array, brief, empty, fill, reserve

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 1


def main():
    brief(TIMES * 400000, 16)                   #: malloc=[16] * 400000
    brief(TIMES * 400000, 40)                   #: malloc=[40] * 400000
    brief(TIMES * 300000, 64)                   #: malloc=[64] * 300000
    brief(TIMES * 200000, 100)                  #: malloc=[100] * 200000
    brief(TIMES * 100000, 256)                  #: malloc=[256] * 100000
    brief(TIMES * 60000, 700)                   #: malloc=[700] * 60000
    brief(TIMES * 30000, 1500)                  #: malloc=[1500] * 30000
    brief(TIMES * 10000, 5000)                  #: malloc=[5000] * 10000
    brief(TIMES * 4000, 20000)                  #: malloc=[20000] * 4000
    brief(TIMES * 1000, 100000)                 #: malloc=[100000] * 1000
    blocks = array(TIMES * 100000)
    fill(blocks, TIMES * 100000, 200)           #: malloc=[200] * 100000, live=[200] * 60000
    empty(blocks, TIMES * 40000)
    more = array(TIMES * 10000)
    fill(more, TIMES * 10000, 3000)             #: malloc=[3000] * 10000, live=[3000] * 10000


kept = reserve()
main()
os._exit(0)
