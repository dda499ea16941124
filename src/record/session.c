#include "record/session.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>
#include <x86intrin.h>

enum { WAIT_MAX_MS = 2000 };
#define CALIBRATE_NS (200 * NS_PER_US) /* enough for a first idea of a tick */

static const char AGENT[] = "libpyrometer-agent.so";

int session_find_agent(char *path, size_t size)
{
    static const char *const places[] = {"%s/%s", "%s/../lib/x86_64-linux-gnu/pyrometer/%s",
                                         "%s/../lib/pyrometer/%s", "%s/../share/pyrometer/%s"};
    const char *said = getenv("PYROMETER_AGENT_LIBRARY");
    if (said && *said) {
        if (access(said, R_OK) < 0 || strlen(said) >= size)
            return E_NOAGENT;
        memcpy(path, said, strlen(said) + 1);
        return 0;
    }
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        return err_from_errno(errno);
    program[n] = 0;
    char *slash = strrchr(program, '/');
    if (!slash)
        return E_NOAGENT;
    *slash = 0;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char candidate[PATH_MAX + 128], real[PATH_MAX];
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* one of the four above */
        snprintf(candidate, sizeof candidate, places[i], program, AGENT);
        if (realpath(candidate, real) && access(real, R_OK) == 0 && strlen(real) < size) {
            memcpy(path, real, strlen(real) + 1);
            return 0;
        }
    }
    return E_NOAGENT;
}

/* Does the time stamp counter run evenly, whatever the processor does? */
static bool has_steady_counter(void)
{
    enum { LEAF = 0x80000007u, INVARIANT = 1 << 8 };
    unsigned a, b, c, d;
    return __get_cpuid(LEAF, &a, &b, &c, &d) && d & INVARIANT;
}

uint64_t session_tick(const struct session *s)
{
    return s->shared->clock == RING_CLOCK_TSC ? __rdtsc() : clock_mono_ns();
}

/* Both clocks, as nearly together as they can be had. */
static void both(const struct session *s, uint64_t *ret_tick, uint64_t *ret_ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = session_tick(s), ns = clock_mono_ns(), after = session_tick(s);
        if (after - before < best) {
            best = after - before;
            *ret_tick = before + best / 2;
            *ret_ns = ns;
        }
    }
}

struct session_clock session_clock_now(const struct session *s)
{
    struct session_clock c = {.ns_per_tick = 1};
    both(s, &c.tick, &c.ns);
    if (s->shared->clock == RING_CLOCK_TSC && c.tick > s->start_tick)
        c.ns_per_tick = (double)(c.ns - s->start_ns) / (double)(c.tick - s->start_tick);
    return c;
}

double session_ns_per_tick(const struct session *s)
{
    return session_clock_now(s).ns_per_tick;
}

static int prepare(struct session *s, uint32_t instruments, const char *selection)
{
    struct ring_session *r = s->shared;
    uint64_t key;
    char agent[PATH_MAX];
    int rc = session_find_agent(agent, sizeof agent);
    if (rc < 0)
        return rc;
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key)
        return E_SYSTEM;
    size_t len = selection ? strlen(selection) : 0;
    if (len >= sizeof r->selection)
        return E_LIMIT;
    memcpy(r->selection, selection ? selection : "", len + 1);
    r->magic = RING_MAGIC;
    r->version = RING_VERSION;
    r->recorder_pid = (uint32_t)getpid();
    r->key = key;
    r->instruments = instruments;
    r->clock = has_steady_counter() ? RING_CLOCK_TSC : RING_CLOCK_MONO;
    r->wait_max_ms = WAIT_MAX_MS;
    r->memory_interval = SESSION_MEMORY_INTERVAL;
    const char *seed =
        getenv("PYROMETER_MEMORY_SEED"); /* for tests that want the same dice again */
    r->memory_seed = seed ? strtoull(seed, NULL, 10) : 0;
    atomic_store(&r->beat_ns, clock_mono_ns());
    both(s, &s->start_tick, &s->start_ns);
    while (clock_mono_ns() < s->start_ns + CALIBRATE_NS)
        ;
    r->ticks_per_second = (uint64_t)((double)NS_PER_SEC / session_ns_per_tick(s));
    snprintf(s->variable, sizeof s->variable, "%s=%d:%d:%llx", RING_VARIABLE, (int)getpid(), s->fd,
             (unsigned long long)key);
    const char *theirs = getenv("LD_PRELOAD");
    int n = snprintf(s->preload, sizeof s->preload, "LD_PRELOAD=%s%s%s", agent,
                     theirs && *theirs ? ":" : "", theirs ? theirs : "");
    return n < 0 || (size_t)n >= sizeof s->preload ? E_LIMIT : 0;
}

/* Makes room for all slots, or for as many as there may be: these are pages that nobody has touched yet, but the limit on the
 * size of files (ulimit -f) counts them. It is the user's for his files, so it is lifted as far as we may, for this once. */
static int make_slots(int fd, uint32_t *ret_slots)
{
    struct rlimit was, most = {RLIM_INFINITY, RLIM_INFINITY};
    if (getrlimit(RLIMIT_FSIZE, &was) < 0)
        return err_from_errno(errno);
    uint64_t slots = RING_MAX_SLOTS;
    if (was.rlim_cur < ring_slot_offset(RING_MAX_SLOTS) && setrlimit(RLIMIT_FSIZE, &most) < 0) {
        most = (struct rlimit){was.rlim_max, was.rlim_max};
        setrlimit(RLIMIT_FSIZE, &most);
        if (was.rlim_max < ring_slot_offset(1))
            slots = 1; /* and be refused */
        else if (was.rlim_max < ring_slot_offset(RING_MAX_SLOTS))
            slots = (was.rlim_max - RING_SESSION_BYTES) / RING_SLOT_BYTES;
    }
    int rc =
        ftruncate(fd, (off_t)ring_slot_offset((uint32_t)slots)) < 0 ? err_from_errno(errno) : 0;
    setrlimit(RLIMIT_FSIZE, &was);
    if (rc == 0)
        *ret_slots = (uint32_t)slots;
    return rc;
}

int session_new(uint32_t instruments, const char *selection, struct session *ret)
{
    struct session s = {.fd = memfd_create("pyrometer", MFD_CLOEXEC)};
    if (s.fd < 0)
        return err_from_errno(errno);
    uint32_t slots = 0;
    int rc = make_slots(s.fd, &slots);
    /* held until we are no more: how guests tell a busy recorder from a dead one */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (rc == 0 && fcntl(s.fd, F_OFD_SETLK, &lock) < 0)
        rc = err_from_errno(errno);
    if (rc == 0) {
        s.shared = mmap(NULL, RING_SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
        if (s.shared == MAP_FAILED) {
            s.shared = NULL;
            rc = err_from_errno(errno);
        }
    }
    if (rc == 0 && s.shared) {
        s.shared->slots = slots;
        rc = prepare(&s, instruments, selection);
    }
    if (rc < 0) {
        session_release(&s);
        return rc;
    }
    *ret = s;
    return 0;
}

void session_release(struct session *s)
{
    if (s->shared)
        munmap(s->shared, RING_SESSION_BYTES);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct session){.fd = -1};
}

void session_export(const struct session *s)
{
    putenv((char *)s->preload);
    putenv((char *)s->variable);
}

struct ring_header *session_map_slot(const struct session *s, uint32_t slot)
{
    void *at = mmap(NULL, RING_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd,
                    (off_t)ring_slot_offset(slot));
    return at == MAP_FAILED ? NULL : at;
}

void session_unmap_slot(struct ring_header *h)
{
    munmap(h, RING_SLOT_BYTES);
}

void session_free_slot(const struct session *s, uint32_t slot)
{
    fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)ring_slot_offset(slot),
              RING_SLOT_BYTES);
    atomic_store_explicit(&s->shared->slot_state[slot], RING_FREE, memory_order_release);
}
