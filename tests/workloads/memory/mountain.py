"""One block as large as it is told: mountain.py SIZE. Two runs of it differ in nothing else."""
import os
import sys

from truth import free, malloc, reserve

kept = reserve()
free(malloc(int(sys.argv[1])))
os._exit(0)
