/* A thread that is halted in the midst of a malloc or free, in the code of one library, while three others go on.
 *
 * A signal comes at moments of its own; its handler looks where the thread was, and if that was inside of the library it
 * holds the thread there until the others have allocated as much as they were asked to. If they needed anything that
 * the halted thread holds, they would never get there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { OTHERS = 3, LIVE = 16, MOST_PLACES = 4096 };

static struct {
    const char *name;
    uintptr_t from, to; /* its code */
} library;

static _Atomic int wanted, held; /* a halt is wanted; the thread is halted */
static _Atomic uintptr_t place;  /* where */
static _Atomic int ended;
static pthread_mutex_t everybody = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int locking;

static int find(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    if (!strstr(info->dlpi_name, library.name))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            library.from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            library.to = library.from + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static void handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    if (at < library.from || at >= library.to || !atomic_exchange(&wanted, 0))
        return;
    atomic_store(&place, at - library.from);
    atomic_store(&held, 1);
    struct timespec nap = {0, 100000};
    while (atomic_load(&held))
        nanosleep(&nap, NULL);
}

/* Blocks of many sizes in no order, `rounds` of them, or until the end. False: a lock was not to be had. */
static int allocate(long rounds, uint32_t dice, int waits)
{
    void *live[LIVE] = {0};
    int good = 1;
    for (long i = 0; good && (rounds ? i < rounds : !atomic_load(&ended)); i++) {
        int lock = atomic_load(&locking);
        if (lock && waits)
            pthread_mutex_lock(&everybody);
        else if (lock && (good = pthread_mutex_trylock(&everybody) == 0) == 0)
            break;
        dice = dice * 1664525u + 1013904223u;
        void **one = &live[dice >> 28];
        free(*one);
        *one = malloc(16 + (dice >> 16) % 256);
        if (lock)
            pthread_mutex_unlock(&everybody);
    }
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    return good;
}

static void *victim(void *unused)
{
    (void)unused;
    allocate(0, 1, 1);
    return NULL;
}

struct other {
    long rounds;
    uint32_t seed;
};

static void *go_on(void *data)
{
    const struct other *o = data;
    return (void *)(intptr_t)allocate(o->rounds, o->seed, 0);
}

/* The others while the victim is halted: how many came to their end. */
static int try_others(long rounds)
{
    pthread_t threads[OTHERS];
    struct other others[OTHERS];
    int good = 0;
    for (int i = 0; i < OTHERS; i++) {
        others[i] = (struct other){rounds, (uint32_t)i + 2};
        pthread_create(&threads[i], NULL, go_on, &others[i]);
    }
    for (int i = 0; i < OTHERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        good += result != NULL;
    }
    return good;
}

/* Halts a thread so many times inside of the library. Returns how many of the others came to their end meanwhile, -1 if there
 * is no such library; at how many different places it was goes to `places`. With `locked`, the control, the victim
 * has a lock that the others would need. */
int halt(const char *name, int times, long rounds, int locked, int *places)
{
    static uintptr_t seen[MOST_PLACES];
    library.name = name;
    *places = 0;
    if (!dl_iterate_phdr(find, NULL) || times > MOST_PLACES)
        return -1;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    atomic_store(&ended, 0);
    atomic_store(&locking, locked);
    pthread_t thread;
    pthread_create(&thread, NULL, victim, NULL);
    int good = 0;
    for (int i = 0; i < times; i++) {
        struct timespec nap = {0, 200000 + 7000 * (i % 13)};
        nanosleep(
            &nap,
            NULL); /* it goes on from where it was halted: a signal now would meet it there again */
        atomic_store(&wanted, 1);
        while (!atomic_load(&held)) {
            pthread_kill(thread, SIGUSR1);
            nanosleep(&nap, NULL);
        }
        good += try_others(rounds);
        int known = 0;
        for (int k = 0; k < *places; k++)
            known |= seen[k] == atomic_load(&place);
        if (!known)
            seen[(*places)++] = atomic_load(&place);
        atomic_store(&held, 0);
    }
    atomic_store(&ended, 1);
    pthread_join(thread, NULL);
    return good;
}
