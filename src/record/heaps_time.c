/* A process's memory over time: points of its curves, and checkpoints. Both become rarer with the age of the process, and
 * checkpoints with their size and with what all of them have taken, so that the file stays small whatever the length of the run. */
#include "record/heaps.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_SNAPSHOTS = 64 }; /* that wait to be carried: then none is taken */
#define CHECKPOINT_NS (900 * NS_PER_MS)
#define POINT_NS      (10 * NS_PER_MS)
#define FILE_BYTES    (12 << 20) /* all checkpoints of all processes */
enum {
    PART = 8, /* of the room that is left, for each doubling of the age or of the marks, about */
    EVERY_MARK = 256,   /* marks with a checkpoint each; then every other one, every fourth … */
    LEAST_MARKS = 8,    /* the first ones, however large they are */
    CHECKPOINTS = 1024, /* one for each such part of the age, if they are small */
    CHILD_SITES = 32,   /* by bytes, and as many by their part of the peak */
};

uint64_t heaps_ns(const struct heaps *h, const struct session_clock *clock, uint64_t tick)
{
    double ago = (double)(int64_t)(clock->tick - tick) * clock->ns_per_tick;
    uint64_t now = clock->ns - h->origin_ns;
    if (ago < 0 || ago > (double)now)
        return ago < 0 ? now : 0;
    return (uint64_t)((double)now - ago);
}

static uint64_t read_rss(uint32_t pid)
{
    char path[64], text[128];
    unsigned long long size, resident;
    snprintf(path, sizeof path, "/proc/%u/statm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    return sscanf(text, "%llu %llu", &size, &resident) == 2
               ? resident * (uint64_t)sysconf(_SC_PAGESIZE)
               : 0;
}

static uint64_t unscaled(const struct heap *h, uint64_t sum)
{
    return h->interval ? (sum + HEAP_SAMPLE_SCALE / 2) / HEAP_SAMPLE_SCALE : sum;
}

static void add_point(struct heaps *h, struct heaps_process *p, uint64_t now)
{
    uint64_t rss = read_rss(p->pid);
    struct heaps_point *point = rss ? vec_push(&p->points) : NULL;
    if (!point)
        return;
    *point = (struct heaps_point){
        .time_ns = now - h->origin_ns,
        .rss = rss,
        .heap = unscaled(&p->heap, p->heap.live_bytes - p->heap.object_bytes),
        .objects = unscaled(&p->heap, p->heap.object_bytes),
    };
    p->point_ns = now;
}

static size_t take_sizes(struct heap *heap, struct record_sizes *out)
{
    size_t n = 0;
    for (uint32_t a = 0; a < RECORD_ALLOCATOR_COUNT; a++)
        for (uint32_t b = 0; b < HEAP_BINS; b++) {
            if (!heap->bins[a][b][0])
                continue;
            out[n++] = (struct record_sizes){a, b, unscaled(heap, heap->bins[a][b][0]),
                                             unscaled(heap, heap->bins[a][b][1])};
            heap->bins[a][b][0] = heap->bins[a][b][1] = 0;
        }
    return n;
}

static void take_change(struct heap_site *s, const struct heap_peak *peak, uint32_t number,
                        struct heaps_change *ret)
{
    *ret = (struct heaps_change){
        .site = number,
        .sums = {.count = s->sums.count - s->taken.count,
                 .bytes = s->sums.bytes - s->taken.bytes,
                 .freed = s->sums.freed - s->taken.freed,
                 .freed_bytes = s->sums.freed_bytes - s->taken.freed_bytes,
                 .brief = s->sums.brief - s->taken.brief,
                 .brief_bytes = s->sums.brief_bytes - s->taken.brief_bytes,
                 .variance = s->sums.variance - s->taken.variance},
        .peak_count = peak->count,
        .peak_bytes = peak->bytes,
        .live_variance = s->live_variance,
        .peak_variance = peak->variance,
    };
    s->taken = s->sums;
    s->peak_taken = *peak;
    s->changed = false;
}

/* --- children, where the room is used up: programs may start thousands ---
 *
 * What a process takes in the file has no bound but the number of its sites, and it is taken at its end, too. So when all have taken
 * what there was, a child that is met tells little: the sites that matter by themselves, the others as one, and nothing before it
 * is a second old. Sites that were told before stay as they were. The first process, which most ask for, is not cut, nor is any of
 * whom all events are kept. */

static bool is_cut(const struct heaps *h, const struct heaps_process *p)
{
    return p->is_child && !p->heap.log && h->written_bytes >= FILE_BYTES;
}

struct rank {
    uint64_t weight;
    uint32_t site;
};

static int by_weight(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->site > y->site) - (x->site < y->site);
}

static void spare_largest(struct heap *heap, struct rank *ranks, size_t count)
{
    qsort(ranks, count, sizeof *ranks, by_weight);
    for (size_t i = 0; i < count && i < CHILD_SITES; i++)
        heap->sites.data[ranks[i].site].is_cut = false;
}

static void cut_sites(struct heap *heap)
{
    struct rank *ranks = calloc(heap->sites.len + 1, sizeof *ranks);
    size_t count = 0;
    if (!ranks)
        return; /* then it takes more */
    for (uint32_t i = 0; i < heap->sites.len; i++) {
        struct heap_site *s = &heap->sites.data[i];
        if (s->group != UINT32_MAX || s->taken.count) /* told, or on its way */
            continue;
        s->is_cut = true;
        ranks[count++] = (struct rank){s->sums.bytes, i};
    }
    spare_largest(heap, ranks, count);
    for (size_t i = 0; i < count; i++)
        ranks[i].weight = heap->sites.data[ranks[i].site].peak_bytes;
    spare_largest(heap, ranks, count);
    free(ranks);
}

void heaps_snapshot(struct heaps *h, struct heaps_process *p, uint32_t flags, uint64_t now_ns)
{
    struct heap *heap = &p->heap;
    struct heaps_snapshot *s =
        p->snapshots.len < MAX_SNAPSHOTS || p->ended ? vec_push(&p->snapshots) : NULL;
    if (!s)
        return;
    if (heap->log) /* should the recorder be killed, events and checkpoints end at one moment */
        memlog_finish_block(heap->log);
    struct session_clock clock = session_clock_now(h->session);
    size_t room = 0;
    double excess = heap_peak_excess(heap);
    uint64_t peak_bytes = 0;
    for (size_t i = 0; i < heap->sites.len; i++) {
        struct heap_site *site = &heap->sites.data[i];
        heap_settle(heap, site);
        struct heap_peak peak = heap_peak_of(heap, site, excess);
        site->changed |=
            peak.bytes != site->peak_taken.bytes || peak.count != site->peak_taken.count;
        room += site->changed;
        peak_bytes += peak.bytes;
    }
    if (is_cut(h, p))
        cut_sites(heap);
    s->sizes = calloc((size_t)RECORD_ALLOCATOR_COUNT * HEAP_BINS, sizeof *s->sizes);
    s->changes = calloc(room + 1, sizeof *s->changes);
    if (!s->sizes || !s->changes) {
        free(s->sizes);
        free(s->changes);
        p->snapshots.len--;
        return;
    }
    s->head = (struct record_memory){
        .flags = flags | (heap->interval ? RECORD_MEMORY_SAMPLED : 0),
        .time_ns = max_u64(now_ns, p->checkpoint_time_ns),
        .live_bytes = unscaled(heap, heap->live_bytes),
        .live_count = unscaled(heap, heap->live_count),
        .peak_bytes = unscaled(heap, peak_bytes),
        .peak_ns = !heap->peak_tick ? 0
                   : heap->log      ? heap->peak_ns /* the log's time, to the nanosecond */
                                    : heaps_ns(h, &clock, heap->peak_tick),
    };
    s->size_count = take_sizes(heap, s->sizes);
    size_t told = 0;
    for (size_t i = 0; i < heap->sites.len; i++)
        if (heap->sites.data[i].changed) {
            told += !heap->sites.data[i].is_cut;
            struct heap_peak peak = heap_peak_of(heap, &heap->sites.data[i], excess);
            take_change(&heap->sites.data[i], &peak, (uint32_t)i, &s->changes[s->change_count++]);
        }
    /* of one in the file, compressed, about; the three variances of a sampled one hardly can be */
    enum { SITE_BYTES = 8, VARIANCES_BYTES = 24 };
    p->checkpoint_time_ns = s->head.time_ns;
    p->checkpoint_ns = clock.ns;
    p->checkpoint_bytes = told * (SITE_BYTES + (heap->interval ? VARIANCES_BYTES : 0)) + 64;
    h->written_bytes += p->checkpoint_bytes;
}

/* What may still be written; there always is some, so that a long run has its last checkpoint not too long ago. */
static uint64_t room_for(uint64_t written)
{
    return max_u64(FILE_BYTES / 16, FILE_BYTES - min_u64(FILE_BYTES, written));
}

bool heaps_is_due(uint64_t age, uint64_t since, uint64_t each, uint64_t written)
{
    double part = (double)each * PART / (double)room_for(written);
    double wait = (double)age * (part > 1. / CHECKPOINTS ? part : 1. / CHECKPOINTS);
    double least = min_u64(CHECKPOINT_NS, max_u64(age / 2, 50 * NS_PER_MS));
    return (double)since >= (wait > least ? wait : least);
}

bool heaps_wants_mark(uint64_t n, uint64_t each, uint64_t written)
{
    uint64_t most = min_u64(EVERY_MARK, room_for(written) / PART / max_u64(each, 1)), every = 1;
    if (n <= LEAST_MARKS || !most)
        return n <= LEAST_MARKS;
    while (n / every > most)
        every *= 2;
    return n % every == 0;
}

void heaps_keep_time(struct heaps *h, struct heaps_process *p, const struct session_clock *clock,
                     uint64_t tick)
{
    enum { POINTS = 1000 };
    uint64_t now = clock_mono_ns(), age = now - p->start_ns;
    if (now - p->point_ns >= max_u64(POINT_NS, age / POINTS))
        add_point(h, p, now);
    if (is_cut(h, p) && age < NS_PER_SEC)
        return;
    if (heaps_is_due(age, now - p->checkpoint_ns, p->checkpoint_bytes, h->written_bytes) &&
        (p->heap.live_count || p->heap.sites.len))
        heaps_snapshot(h, p, 0, heaps_ns(h, clock, tick));
}
