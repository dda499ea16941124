/* How often a second this machine lets one process read a running one: the bare system call of a look.
 *
 *     read_bare PID SECONDS
 *
 * Reads 512 bytes of the heap and a page of the stack, again and again, in one process_vm_readv each time: what a look at
 * a stack that stands still copies from 3.13 on, and nothing is done with it. Prints the calls a second. No sampler that
 * reads so can be quicker here. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

enum { HEAP_BYTES = 512, PAGE = 4096, BATCH = 256 };

/* Where the mapping of that name begins and ends; zeros if there is none. */
static void find(int pid, const char *name, uintptr_t *ret_begin, uintptr_t *ret_end)
{
    char path[64], line[512];
    *ret_begin = *ret_end = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, name))
            sscanf(line, "%lx-%lx", ret_begin, ret_end);
    if (f)
        fclose(f);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    static char copy[HEAP_BYTES + PAGE];
    if (argc != 3)
        return 2;
    int pid = atoi(argv[1]);
    uintptr_t heap, stack, end;
    find(pid, "[heap]", &heap, &end);
    find(pid, "[stack]", &stack, &end);
    const struct iovec local = {copy, sizeof copy};
    const struct iovec remote[] = {{(void *)heap, HEAP_BYTES}, {(void *)(end - PAGE), PAGE}};
    double begin = seconds(), until = begin + atof(argv[2]), now = begin;
    long calls = 0;
    while (now < until) {
        for (int i = 0; i < BATCH; i++)
            if (process_vm_readv(pid, &local, 1, remote, 2, 0) != (ssize_t)sizeof copy)
                return 1;
        calls += BATCH;
        now = seconds();
    }
    printf("%.0f\n", (double)calls / (now - begin));
    return 0;
}
