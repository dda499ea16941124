/* A library that is preloaded beside the guest and allocates where it is least expected: in its constructor, which runs before the
 * guest's; in a dlsym of its own, by which the guest looks for libc's malloc; on the error path of the true dlsym; and in a function
 * of libc's that the guest calls, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCKS = 40, OWN = 777, FROM_DLSYM = 64 };

static unsigned char *early[BLOCKS];
static unsigned char *by_dlsym[FROM_DLSYM];
static int by_dlsym_count;
static void *(*true_dlsym)(void *, const char *);

static void find_true_dlsym(void)
{
    true_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!true_dlsym)
        true_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!true_dlsym)
        abort();
}

void *dlsym(void *handle, const char *name)
{
    if (!true_dlsym)
        find_true_dlsym();
    if (by_dlsym_count < FROM_DLSYM) {
        unsigned char *block = calloc(1, 100);
        block = realloc(block, 200);
        memset(block, by_dlsym_count, 200);
        by_dlsym[by_dlsym_count++] = block;
        true_dlsym(RTLD_DEFAULT, "there_is_no_such_function"); /* makes a message, by malloc */
        free(malloc(50));
    }
    return true_dlsym(handle, name);
}

pid_t getppid(void)
{
    void *volatile kept = malloc(OWN);
    (void)kept;
    return (pid_t)syscall(SYS_getppid);
}

__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        early[i] = i % 2 ? malloc((size_t)i) : calloc(3, (size_t)i);
        early[i] = realloc(early[i], 1000 + (size_t)i);
        memset(early[i], i, 1000 + (size_t)i);
        free(strdup("given back"));
    }
}

/* How many bytes are not what they were; all is given back. */
int early_end(void)
{
    int wrong = 0;
    for (int i = 0; i < BLOCKS; i++) {
        for (int k = 0; k < 1000 + i; k++)
            wrong += early[i][k] != i;
        free(early[i]);
    }
    for (int i = 0; i < by_dlsym_count; i++) {
        for (int k = 0; k < 200; k++)
            wrong += by_dlsym[i][k] != i;
        free(realloc(by_dlsym[i], 5000));
    }
    return by_dlsym_count ? wrong : -1;
}
