/* Memory rings written by hand: what the recorder makes of their words, in which order, and what of it stands in the file. */
#include "base/clock.h"
#include "base/err.h"
#include "format/ringmem.h"
#include "profile/profile.h"
#include "record/facts.h"
#include "record/heaps.h"
#include "record/procs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCK 0x7f0000001000ull

#define PAGE 4096ull

enum {
    MALLOC = RECORD_ALLOCATOR_MALLOC,
    IMAGE = 1,
    FAR = 1 << 20,      /* ticks: past any that are near to the base */
    ALWAYS = 100 * FAR, /* past all that are written here */
};

static struct session session;
static struct heaps *heaps;
static uint64_t base; /* the first tick of every ring */

/* A thread's end of a ring. */
struct pen {
    uint32_t slot;
    struct ring_header *ring; /* mapped a second time: the recorder unmaps its own */
    uint64_t *words;
    uint64_t head, tick;
};

static void begin(uint32_t instruments)
{
    session = (struct session){.fd = -1};
    assert_int_equal(session_new(instruments, NULL, &session), 0);
    session.keeps_memory_events = true;
    assert_int_equal(heaps_new(&session, session.start_ns, &heaps), 0);
    base = session.start_tick;
}

static void end(void)
{
    heaps_free(heaps);
    session_release(&session);
}

static struct pen open_pen_of(uint32_t pid, uint32_t slot, uint32_t tid, uint64_t image)
{
    struct pen p = {.slot = slot, .ring = session_map_slot(&session, slot)};
    assert_non_null(p.ring);
    p.words = (uint64_t *)((char *)p.ring + RING_HEADER_BYTES);
    p.tick = base;
    p.ring->pid = pid;
    p.ring->tid = p.ring->pid + tid;
    p.ring->ident = 1000 + tid;
    p.ring->image = image;
    p.ring->content = RING_CONTENT_MEMORY;
    p.ring->start_tick = base;
    p.ring->start_ns = session.start_ns;
    atomic_store(&session.shared->slot_state[slot], RING_LIVE);
    heaps_meet(heaps, slot, session_map_slot(&session, slot));
    return p;
}

static struct pen open_pen(uint32_t slot, uint32_t tid, uint64_t image)
{
    return open_pen_of((uint32_t)getpid(), slot, tid, image);
}

/* Of a process that is no more. */
static uint32_t gone_pid(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return (uint32_t)pid;
}

static void close_pen(struct pen *p)
{
    if (p->ring)
        session_unmap_slot(p->ring);
    p->ring = NULL;
}

static void put(struct pen *p, uint64_t word)
{
    p->words[p->head++ % RING_WORDS] = word;
}

static void publish(struct pen *p)
{
    atomic_store(&p->ring->head, p->head);
}

/* Ticks are those since the base. */
static uint64_t until(struct pen *p, uint64_t tick)
{
    uint64_t ticks = base + tick - p->tick;
    p->tick = base + tick;
    if (ticks >> RINGMEM_FREE_TICKS == 0)
        return ticks;
    put(p, ringmem_word(RINGMEM_TIME, ticks));
    return 0;
}

static void put_block(struct pen *p, enum ringmem_kind kind, uint64_t address, uint64_t size,
                      uint64_t tick)
{
    uint64_t ticks = until(p, tick);
    put(p,
        ringmem_block(kind, kind == RINGMEM_MAP ? RECORD_ALLOCATOR_MMAP : MALLOC, address, size));
    put(p, ringmem_size(size, ticks));
    publish(p);
}

static void put_alloc(struct pen *p, uint64_t address, uint64_t size, uint64_t tick)
{
    put_block(p, RINGMEM_ALLOC, address, size, tick);
}

static void put_free(struct pen *p, uint64_t address, uint64_t tick)
{
    put(p, ringmem_free(address, until(p, tick)));
    publish(p);
}

static void put_ext(struct pen *p, enum ringmem_ext kind, const void *payload, size_t len)
{
    uint64_t words = (len + 7) / 8;
    put(p, ringmem_word(RINGMEM_EXT, (uint64_t)kind | words << 4));
    for (uint64_t i = 0; i < words; i++) {
        uint64_t word = 0;
        memcpy(&word, (const char *)payload + 8 * i, len - 8 * i < 8 ? len - 8 * i : 8);
        put(p, word);
    }
    publish(p);
}

static void put_mark(struct pen *p, uint64_t tick)
{
    uint64_t at = base + tick;
    p->tick = at;
    put_ext(p, RINGMEM_EXT_MARK, &at, sizeof at);
}

/* Its instructions: ten bytes a line. */
static void define(struct pen *p, uint32_t id, const char *name, uint32_t first_line)
{
    static const uint8_t lines[] = {10, 1, 10, 1, 10, 1};
    struct {
        struct ringmem_code code;
        char rest[64];
    } payload = {.code = {.id = id,
                          .first_line = first_line,
                          .name_len = (uint32_t)strlen(name),
                          .file_len = 4,
                          .lines_len = sizeof lines,
                          .lines = RINGMEM_LINES_LNOTAB}};
    int n = snprintf(payload.rest, sizeof payload.rest, "%sa.py", name);
    memcpy(payload.rest + n, lines, sizeof lines);
    put_ext(p, RINGMEM_EXT_CODE, &payload, sizeof payload.code + (size_t)n + sizeof lines);
}

static struct heaps_process *process(size_t at)
{
    assert_true(at < heaps->processes.len);
    return heaps->processes.data[at];
}

static uint64_t nonsense(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < heaps->processes.len; i++)
        for (size_t k = 0; k < process(i)->feeds.len; k++)
            sum += process(i)->feeds.data[k]->nonsense;
    return sum;
}

/* A turn of the recorder, which has looked for rings that many ticks after the base. */
static uint64_t turn(uint64_t ticks, bool last)
{
    struct session_clock clock = session_clock_now(&session);
    clock.ns += (uint64_t)((double)(base + ticks - clock.tick) * clock.ns_per_tick);
    clock.tick = base + ticks;
    return heaps_turn(heaps, &clock, false, last);
}

/* No more will come. */
static void finish(void)
{
    while (turn(ALWAYS, true))
        ;
}

/* --- stacks --- */

/* Code and instruction of each frame, innermost first: "2@10 1@0". */
static void assert_stack(uint32_t site, const char *want)
{
    const struct heap *h = &process(0)->heap;
    char text[256] = "";
    size_t len = 0;
    assert_true(site < h->sites.len);
    for (uint32_t n = h->sites.data[site].node; n; n = h->nodes.data[n].parent)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%u@%d", len ? " " : "",
                                h->nodes.data[n].code, h->nodes.data[n].offset);
    assert_string_equal(text, want);
}

static void test_stacks(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen p = open_pen(3, 0, IMAGE);
    put_alloc(&p, BLOCK, 1, 1); /* outside of all Python */
    put(&p, ringmem_push(1, 0));
    put(&p, ringmem_push(0, 0)); /* the interpreter's own */
    put(&p, ringmem_push(2, 10));
    put_alloc(&p, BLOCK + 8, 2, 2);
    put(&p, ringmem_move(20));
    put_alloc(&p, BLOCK + 16, 3, 3);
    put(&p, ringmem_word(RINGMEM_KEEP, 2));
    put_alloc(&p, BLOCK + 24, 4, 4); /* in the shim: charged to its caller */
    put(&p, ringmem_push(3, -2));    /* a function that has not begun */
    put_alloc(&p, BLOCK + 32, 5, 5);
    put(&p, ringmem_word(RINGMEM_KEEP, 1));
    put(&p, ringmem_move(10));
    put_alloc(&p, BLOCK + 40, 6, 6);
    put(&p, ringmem_word(RINGMEM_KEEP, 0));
    put_alloc(&p, BLOCK + 48, 7, 7);
    finish();
    assert_int_equal(nonsense(), 0);
    static const char *const want[] = {"", "2@10 1@0", "2@20 1@0", "1@0", "3@-2 1@0", "1@10"};
    for (uint32_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_stack(i, want[i]);
        assert_int_equal(process(0)->heap.sites.data[i].sums.bytes, i ? i + 1 : 1 + 7);
    }
    assert_int_equal(process(0)->heap.sites.len, ARRAY_LEN(want));
    close_pen(&p);
    end();
}

/* --- order --- */

/* A block that two threads hand to and fro at one address, whichever ring is looked at first. */
static void test_order_of_stamps(void **state ATTR_UNUSED)
{
    enum { ROUNDS = 1000 };
    for (uint32_t first = 0; first < 2; first++) {
        begin(RING_HEAP);
        struct pen pens[2];
        pens[first] = open_pen(first, first, IMAGE);
        pens[!first] = open_pen(!first, !first, IMAGE);
        for (uint64_t i = 0; i < ROUNDS; i++) {
            put_alloc(&pens[i % 2], BLOCK, i, 20 * i);
            put_free(&pens[(i + 1) % 2], BLOCK, 20 * i + 10);
        }
        put_alloc(&pens[0], BLOCK, 5, 20ull * ROUNDS);
        assert_int_equal(turn(ALWAYS, false), 3 * ROUNDS + 2);
        const struct heap *h = &process(0)->heap;
        assert_int_equal(h->unknown + h->missed, 0);
        assert_int_equal(h->live_count, 1);
        assert_int_equal(h->peak_bytes, ROUNDS - 1);
        close_pen(&pens[0]);
        close_pen(&pens[1]);
        end();
    }
}

/* The moment up to which all is known bounds what is taken, also of a single ring: who allocated what is given back
 * here may not have been met yet. */
static void test_unmet_ring(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen a = open_pen(0, 0, IMAGE);
    const struct heap *h = &process(0)->heap;
    put_alloc(&a, BLOCK + 64, 1, 1);
    put_free(&a, BLOCK, FAR + 2);
    turn(FAR, false);
    assert_int_equal(h->live_count, 1);
    assert_int_equal(h->unknown, 0);
    struct pen b = open_pen(1, 1, IMAGE);
    put_alloc(&b, BLOCK, 1, FAR + 1);
    turn(3ull * FAR, false);
    assert_int_equal(h->unknown, 0);
    assert_int_equal(h->live_count, 1);
    close_pen(&a);
    close_pen(&b);
    end();
}

/* A thread that makes a record may have its stamp already: nothing later is taken before. */
static void test_writing_holds_back(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    base = session_tick(&session) +
           (1ull << 40); /* not so old that one is stuck, however slow we are */
    struct pen a = open_pen(0, 0, IMAGE), b = open_pen(1, 1, IMAGE);
    put_alloc(&a, BLOCK, 1, 10);
    atomic_store(&a.ring->writing, 1);
    put_alloc(&b, BLOCK + 8, 1, 5);
    put_alloc(&b, BLOCK + 16, 1, 20);
    put_free(&b, BLOCK + 24, 40);
    turn(ALWAYS, false);
    const struct heap *h = &process(0)->heap;
    assert_int_equal(h->live_count, 2);
    assert_int_equal(h->unknown, 0);
    put_alloc(&a, BLOCK + 24, 1, 30);
    atomic_store(&a.ring->writing, 0);
    turn(ALWAYS, false);
    assert_int_equal(h->live_count, 3);
    assert_int_equal(h->unknown, 0);
    /* one that died in the middle holds nobody back */
    atomic_store(&a.ring->writing, 1);
    put_free(&b, BLOCK, 50);
    turn(ALWAYS, false);
    assert_int_equal(h->live_count, 3);
    finish();
    assert_int_equal(h->live_count, 2);
    close_pen(&a);
    close_pen(&b);
    end();
}

/* --- temporaries --- */

static uint64_t briefs(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < process(0)->heap.sites.len; i++)
        sum += process(0)->heap.sites.data[i].sums.brief;
    return sum;
}

/* Given back by its own thread, which has asked for nothing else meanwhile. */
static void test_temporaries(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen a = open_pen(0, 0, IMAGE), b = open_pen(1, 1, IMAGE);
    put_alloc(&a, BLOCK, 1, 1);
    put_alloc(&a, BLOCK + 8, 1, 2);
    put_free(&a, BLOCK, 3); /* not the last */
    put_alloc(&a, BLOCK, 1, 4);
    put_block(&a, RINGMEM_MAP, 1ull << 40, PAGE, 5);
    put_free(&a, BLOCK, 6); /* pages were asked for meanwhile */
    turn(ALWAYS, false);
    assert_int_equal(briefs(), 0);
    put_alloc(&a, BLOCK, 1, 7);
    put_free(&a, BLOCK, 8);
    turn(ALWAYS, false);
    assert_int_equal(briefs(), 1);
    for (uint64_t tick = 10; tick < 50; tick += 10) { /* the other's, at the same address */
        put_alloc(&b, BLOCK, 1, tick);
        put_alloc(&b, BLOCK + 16, 1, tick + 1);
        put_free(&b, BLOCK + 16, tick + 2);
        put_free(&a, BLOCK, tick + 3);
    }
    turn(ALWAYS, false);
    assert_int_equal(briefs(), 1 + 4);
    put_alloc(&a, BLOCK, 1, 60);
    put_free(&a, BLOCK, 61);
    put(&a, ringmem_word(RINGMEM_UNDO, 0)); /* a realloc that failed */
    put_free(&a, BLOCK, 62);
    finish();
    assert_int_equal(briefs(), 1 + 4 + 1);
    assert_int_equal(nonsense(), 0);
    close_pen(&a);
    close_pen(&b);
    end();
}

/* --- ends --- */

static void test_closed_ring(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen a = open_pen(0, 0, IMAGE), b = open_pen(1, 1, IMAGE);
    put_alloc(&a, BLOCK, 10, 1);
    put_alloc(&a, BLOCK + 8, 20, 2);
    atomic_store(&session.shared->slot_state[0], RING_CLOSED);
    turn(ALWAYS, false);
    assert_null(heaps->feed[0]);
    assert_non_null(heaps->feed[1]);
    assert_int_equal(atomic_load(&session.shared->slot_state[0]), RING_FREE);
    close_pen(&a);
    a = open_pen(0, 2, IMAGE); /* another thread gets the slot */
    put_free(&a, BLOCK, 3);
    put_alloc(&a, BLOCK, 5, 4);
    turn(ALWAYS, false);
    assert_int_equal(heaps->processes.len, 1);
    assert_int_equal(process(0)->feeds.len, 3);
    assert_int_equal(process(0)->heap.live_bytes, 25);
    assert_int_equal(process(0)->heap.sites.data[1].thread, 2);
    /* half a record, and its thread is gone */
    put(&b, ringmem_block(RINGMEM_ALLOC, MALLOC, BLOCK + 32, 1));
    publish(&b);
    turn(ALWAYS, false);
    assert_int_equal(nonsense(), 0);
    atomic_store(&session.shared->slot_state[1], RING_CLOSED);
    turn(ALWAYS, false);
    assert_null(heaps->feed[1]);
    assert_int_equal(nonsense(), 1);
    close_pen(&a);
    close_pen(&b);
    end();
}

static const struct heaps_snapshot *last_snapshot(const struct heaps_process *p)
{
    assert_true(p->snapshots.len > 0);
    return &p->snapshots.data[p->snapshots.len - 1];
}

/* The end is told whatever stands in a ring by then. */
static void test_last_checkpoint(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    uint32_t gone = gone_pid();
    struct pen a = open_pen_of(gone, 0, 0, IMAGE), b = open_pen_of(gone, 1, 1, IMAGE);
    put_alloc(&a, BLOCK, 10, 1);
    put(&a, ringmem_block(RINGMEM_MAP, MALLOC, BLOCK + 32, 1)); /* half of one */
    publish(&a);
    uint64_t never = UINT64_MAX;
    put_ext(&b, RINGMEM_EXT_MARK, &never, sizeof never);
    finish();
    assert_true(process(0)->ended);
    assert_int_equal(last_snapshot(process(0))->head.flags, RECORD_MEMORY_LAST);
    assert_int_equal(last_snapshot(process(0))->head.live_bytes, 10);
    assert_int_equal(nonsense(), 1);
    assert_null(heaps->feed[0]);
    assert_null(heaps->feed[1]);
    close_pen(&a);
    close_pen(&b);
    end();
}

/* The recording ends before the process: what it has is not left over. */
static void test_lives_on(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen a = open_pen(0, 0, IMAGE);
    put_alloc(&a, BLOCK, 10, 1);
    publish(&a);
    finish();
    assert_true(process(0)->ended);
    assert_int_equal(last_snapshot(process(0))->head.flags, 0);
    assert_int_equal(last_snapshot(process(0))->head.live_bytes, 10);
    close_pen(&a);
    end();
}

/* Into a program that has no rings: all is given back, unless it has failed. */
static void test_exec_without_us(void **state ATTR_UNUSED)
{
    for (int failed = 0; failed < 2; failed++) {
        begin(RING_HEAP);
        struct pen a = open_pen_of(gone_pid(), 0, 0, IMAGE);
        put_alloc(&a, BLOCK, 10, 1);
        publish(&a);
        atomic_store(&a.ring->exec_tick, failed ? 0 : base + 2);
        finish();
        assert_int_equal(last_snapshot(process(0))->head.live_bytes, failed ? 10 : 0);
        assert_int_equal(last_snapshot(process(0))->head.flags, RECORD_MEMORY_LAST);
        close_pen(&a);
        end();
    }
}

/* exec: the old image's memory is gone with it, and what its rings still had is told before. */
static void test_exec(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen a = open_pen(0, 0, IMAGE), c = open_pen(1, 0, IMAGE + 2),
               b = open_pen(2, 0, IMAGE + 1);
    put_alloc(&a, BLOCK, 10, 1);
    put_alloc(&b, BLOCK, 7, 5);
    put_free(&b, BLOCK + 8, 6);
    put_block(&b, RINGMEM_MAP, 1ull << 40, PAGE, 7);
    put_alloc(&c, BLOCK, 3, 9);
    while (turn(ALWAYS, false))
        ;
    assert_int_equal(heaps->processes.len, 1);
    const struct heap *h = &process(0)->heap;
    assert_false(process(0)->ended);
    assert_int_equal(process(0)->image, IMAGE + 2);
    assert_int_equal(h->live_bytes, 3);
    assert_int_equal(h->live_count, 1);
    assert_int_equal(h->peak_bytes, PAGE + 7);
    assert_int_equal(h->unknown, 1);
    assert_int_equal(h->missed, 0);
    struct pen late = open_pen(3, 1, IMAGE); /* one of a program that is no more */
    put_alloc(&late, BLOCK + 8, 3, 2);
    turn(ALWAYS, false);
    assert_null(heaps->feed[3]);
    assert_int_equal(nonsense(), 1);
    finish();
    assert_true(process(0)->ended);
    assert_int_equal(last_snapshot(process(0))->head.live_bytes, 3);
    close_pen(&a);
    close_pen(&b);
    close_pen(&c);
    close_pen(&late);
    end();
}

/* --- hostile words --- */

static void test_nonsense_is_counted(void **state ATTR_UNUSED)
{
    static const uint32_t bad_kinds[] = {0, 10, 11, 12, 13, 15};
    begin(RING_HEAP);
    struct pen p = open_pen(0, 0, IMAGE);
    uint64_t want = 0;
    for (size_t i = 0; i < ARRAY_LEN(bad_kinds); i++, want++)
        put(&p, ringmem_word((enum ringmem_kind)bad_kinds[i], 12345));
    put(&p, ringmem_word(RINGMEM_KEEP, 1)); /* deeper than it is */
    put(&p, ringmem_word(RINGMEM_KEEP, UINT64_MAX >> 4));
    put(&p, ringmem_move(5)); /* of nobody */
    put(&p, ringmem_block(RINGMEM_ALLOC, RECORD_ALLOCATOR_COUNT, BLOCK, 1));
    put(&p, ringmem_size(1, 1));
    put(&p, ringmem_block(RINGMEM_ALLOC, 31, BLOCK, 1));
    put(&p, ringmem_size(1, 1));
    want += 5;
    for (uint64_t size = 0; size < 2 << 20; size += 1 << 20, want++) { /* nowhere */
        put(&p, ringmem_block(RINGMEM_ALLOC, MALLOC, 4, size));
        put(&p, ringmem_size(size, 1));
    }
    uint64_t short_code[] = {1, 2};
    put_ext(&p, RINGMEM_EXT_CODE, short_code, sizeof short_code);
    struct ringmem_code code = {.id = 1, .name_len = UINT32_MAX, .file_len = UINT32_MAX};
    put_ext(&p, RINGMEM_EXT_CODE, &code, sizeof code);
    code = (struct ringmem_code){.id = 1, .lines = 3};
    put_ext(&p, RINGMEM_EXT_CODE, &code, sizeof code);
    code = (struct ringmem_code){.id = 0};
    put_ext(&p, RINGMEM_EXT_CODE, &code, sizeof code);
    want += 4;
    put_ext(&p, (enum ringmem_ext)9, short_code, sizeof short_code); /* of a newer version */
    code = (struct ringmem_code){.id = RING_MAX_VALUE}; /* takes no more room than another */
    put_ext(&p, RINGMEM_EXT_CODE, &code, sizeof code);
    put(&p, ringmem_word(RINGMEM_UNDO, 0));
    put_alloc(&p, BLOCK, 11, 100);
    put(&p, ringmem_word(RINGMEM_EXT, RINGMEM_EXT_CODE | 100ull << 4)); /* past the head */
    publish(&p);
    want++;
    finish();
    assert_int_equal(nonsense(), want);
    assert_int_equal(heaps->codes.len, 1);
    assert_non_null(heaps_find_code(heaps, RING_MAX_VALUE));
    assert_int_equal(process(0)->heap.live_bytes, 11);
    assert_int_equal(process(0)->heap.blocks.used, 1);
    assert_true(process(0)->ended);
    close_pen(&p);
    end();
}

/* A head that cannot be ends the ring, and nothing else. */
static void test_bad_heads(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen a = open_pen(0, 0, IMAGE), b = open_pen(1, 1, IMAGE);
    put_alloc(&a, BLOCK, 1, 1);
    atomic_store(&a.ring->head, RING_WORDS + 1);
    put_alloc(&b, BLOCK, 1, 2);
    turn(ALWAYS, false);
    assert_null(heaps->feed[0]);
    assert_int_equal(nonsense(), 1);
    assert_int_equal(process(0)->heap.live_count, 1);
    atomic_store(&b.ring->head, 1); /* back */
    turn(ALWAYS, false);
    assert_null(heaps->feed[1]);
    assert_int_equal(nonsense(), 2);
    finish();
    assert_true(process(0)->ended);
    close_pen(&a);
    close_pen(&b);
    end();
}

/* --- into the file --- */

static char path[] = "/tmp/pyrometer-heaps-XXXXXX";

struct file {
    struct record_stats stats;
    struct threadids threads;
    struct target_shared shared;
    struct procs *procs;
};

static void open_file(struct file *f)
{
    struct format_writer_options options = {.force = true};
    *f = (struct file){0};
    f->shared = (struct target_shared){
        .stats = &f->stats, .threads = &f->threads, .origin_ns = session.start_ns};
    assert_int_equal(format_writer_open(path, &options, &f->shared.writer), 0);
    assert_int_equal(target_shared_init(&f->shared), 0);
    assert_int_equal(procs_new(&f->shared, false, &f->procs), 0);
}

static void carry(struct file *f, bool last)
{
    heaps_carry(heaps, &f->shared, f->procs, session_ns_per_tick(&session), last);
    assert_int_equal(format_writer_flush(f->shared.writer), 0);
}

static struct profile *close_file(struct file *f)
{
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(f->shared.writer), 0);
    procs_free(f->procs);
    format_writer_free(f->shared.writer);
    target_shared_release(&f->shared);
    threadids_release(&f->threads);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

enum { MAX_SEEN = 64 };

struct seen {
    struct record_memory memory[MAX_SEEN];
    size_t count;
    struct {
        size_t checkpoint;
        struct record_site site;
    } site[MAX_SEEN];
    size_t sites;
    uint64_t sized, sized_bytes;
};

static int on_memory(void *ctx, const struct record_memory *m)
{
    struct seen *s = ctx;
    assert_true(s->count < MAX_SEEN);
    s->memory[s->count++] = *m;
    return 0;
}

static int on_sizes(void *ctx, const struct record_memory *m ATTR_UNUSED,
                    const struct record_sizes *sizes)
{
    struct seen *s = ctx;
    s->sized += sizes->count;
    s->sized_bytes += sizes->bytes;
    return 0;
}

static int on_site(void *ctx, const struct record_memory *m ATTR_UNUSED,
                   const struct record_site *site)
{
    struct seen *s = ctx;
    assert_true(s->sites < MAX_SEEN);
    s->site[s->sites].checkpoint = s->count - 1;
    s->site[s->sites++].site = *site;
    return 0;
}

static const struct profile_memory_visitor MEMORY = {on_memory, on_sizes, on_site};

/* Of the checkpoint, innermost line; NULL: it is not there. */
static const struct record_site *site_of(const struct seen *s, const struct profile *p,
                                         size_t checkpoint, uint32_t line)
{
    for (size_t i = 0; i < s->sites; i++)
        if (s->site[i].checkpoint == checkpoint &&
            profile_tables(p)->node_line[s->site[i].site.stack] == line)
            return &s->site[i].site;
    return NULL;
}

/* Two instructions of one line are one site in the file; another line is another. */
static void write_checkpoints(struct file *f, struct pen *p)
{
    put(p, ringmem_push(1, 0));
    put_alloc(p, BLOCK, 100, 1);
    put_mark(p, 10);
    turn(ALWAYS, false);
    carry(f, false); /* nothing: the name has not come */
    put(p, ringmem_move(4));
    put_alloc(p, BLOCK + 8, 50, 20);
    put(p, ringmem_move(10));
    put_alloc(p, BLOCK + 16, 1000, 30);
    put_free(p, BLOCK + 16, 31);
    define(p, 1, "main", 5);
    put_mark(p, 40);
    turn(ALWAYS, false);
    carry(f, false);
    put_free(p, BLOCK, 50);
    put_mark(p, 60);
    put(p, ringmem_word(RINGMEM_UNDO, 0)); /* of what a checkpoint has told */
    publish(p);
    finish();
    carry(f, true);
}

static void test_checkpoints(void **state ATTR_UNUSED)
{
    static struct seen s;
    struct file f;
    begin(RING_HEAP);
    open_file(&f);
    struct pen p = open_pen_of(gone_pid(), 0, 0, IMAGE);
    write_checkpoints(&f, &p);
    struct profile *profile = close_file(&f);
    s = (struct seen){0};
    assert_int_equal(profile_each_memory(profile, &MEMORY, &s, NULL), 0);
    /* the turns take checkpoints of their own, by the clock; those here are told by their flags */
    size_t at[4] = {0}, n = 0;
    for (size_t i = 0; i < s.count; i++)
        if (s.memory[i].flags && n < 4)
            at[n++] = i;
    assert_int_equal(n, 4);
    assert_int_equal(s.memory[at[0]].live_bytes, 100);
    assert_int_equal(s.memory[at[1]].live_bytes, 150);
    assert_int_equal(s.memory[at[1]].peak_bytes, 1150);
    assert_int_equal(s.memory[at[2]].live_bytes, 50);
    assert_int_equal(s.memory[at[3]].live_bytes, 150);
    assert_int_equal(s.memory[at[3]].flags, RECORD_MEMORY_LAST);
    assert_int_equal(
        s.sized,
        4); /* the one whose release was undone after it had been told counts again, as in its site */
    assert_int_equal(s.sized_bytes, 1250);
    const struct record_site *last = NULL;
    struct record_site sum = {0};
    for (size_t i = 0; i < s.count; i++) {
        const struct record_site *site = site_of(&s, profile, i, 5);
        if (!site)
            continue;
        last = site;
        sum.count += site->count;
        sum.bytes += site->bytes;
        sum.freed += site->freed;
        sum.freed_bytes += site->freed_bytes;
        assert_true(site->freed <= 1 && site->freed_bytes <= 100);
    }
    assert_non_null(last);
    if (!last)
        return; /* for who does not know that it was left above */
    assert_int_equal(sum.count - sum.freed, 2);
    assert_int_equal(sum.bytes - sum.freed_bytes, 150);
    assert_int_equal(last->peak_count, 2);
    assert_int_equal(last->peak_bytes, 150);
    const struct record_site *brief = site_of(&s, profile, at[1], 6);
    assert_non_null(brief);
    assert_int_equal(brief->brief, 1);
    assert_int_equal(brief->brief_bytes, 1000);
    assert_int_equal(brief->peak_bytes, 1000);
    assert_int_equal(f.stats.value[RECORD_STAT_EVENTS_DAMAGED], 0);
    profile_free(profile);
    close_pen(&p);
    end();
}

/* --- every event --- */

enum { SLOTS = 4096 };

struct replay {
    uint64_t size[SLOTS]; /* what is in each */
    bool used[SLOTS];
    uint64_t live, peak, count, last_ns, end_ns;
    uint64_t kinds[3];
};

static int on_events(void *ctx, const struct record_memory_events *block,
                     const struct record_memory_event *events, size_t n)
{
    struct replay *r = ctx;
    assert_true(block->start_ns <= block->end_ns);
    r->end_ns = block->end_ns;
    for (size_t i = 0; i < n; i++) {
        const struct record_memory_event *e = &events[i];
        assert_true(e->slot < SLOTS && e->kind <= RECORD_MEMORY_SHRINK);
        assert_true(e->time_ns >= block->start_ns && e->time_ns <= block->end_ns);
        r->kinds[e->kind]++;
        assert_true(r->used[e->slot] == (e->kind != RECORD_MEMORY_ALLOCATE));
        uint64_t gone = e->kind == RECORD_MEMORY_FREE     ? r->size[e->slot]
                        : e->kind == RECORD_MEMORY_SHRINK ? e->size
                                                          : 0;
        uint64_t come = e->kind == RECORD_MEMORY_ALLOCATE ? e->size : 0;
        assert_true(gone <= r->size[e->slot] && (e->site < block->site_count || !come));
        r->size[e->slot] += come - gone;
        r->used[e->slot] = e->kind == RECORD_MEMORY_ALLOCATE ||
                           (e->kind == RECORD_MEMORY_SHRINK && r->size[e->slot]);
        r->live += come - gone;
        r->peak = r->live > r->peak ? r->live : r->peak;
        r->count++;
    }
    return 0;
}

/* What is replayed from the file is what the recorder knew. */
static void test_events(void **state ATTR_UNUSED)
{
    enum { EVENTS = 150000, ADDRESSES = 1000 };
    static struct replay r;
    struct file f;
    begin(RING_HEAP);
    open_file(&f);
    struct pen p = open_pen(0, 0, IMAGE);
    define(&p, 1, "main", 5);
    put(&p, ringmem_push(1, 0));
    for (uint64_t i = 0; i < EVENTS; i++) {
        uint64_t address = BLOCK + 8 * (i * 7919 % ADDRESSES);
        if (i / ADDRESSES % 2)
            put_free(&p, address, i);
        else
            put_alloc(&p, address, i % 5 ? 64 : i, i);
        if (i % 1000 == 0) {
            turn(ALWAYS, false);
            carry(&f, false);
        }
    }
    put_block(&p, RINGMEM_MAP, 1ull << 40, 10 * PAGE, EVENTS);
    put_block(&p, RINGMEM_UNMAP, (1ull << 40) + 4 * PAGE, 2 * PAGE, EVENTS + 1);
    put_block(&p, RINGMEM_UNMAP, (1ull << 40) + 8 * PAGE, 2 * PAGE, EVENTS + 2);
    finish();
    const struct heap h = process(0)->heap;
    carry(&f, true);
    assert_int_equal(heaps->processes.len, 0); /* all of it is in the file: it is forgotten */
    struct profile *profile = close_file(&f);
    uint32_t damaged = 0;
    r = (struct replay){0};
    assert_int_equal(profile_each_memory_event(profile, on_events, &r, &damaged), 0);
    assert_int_equal(damaged, 0);
    assert_int_equal(r.count, EVENTS + 3);
    assert_int_equal(r.kinds[RECORD_MEMORY_SHRINK], 2);
    assert_int_equal(r.live, h.live_bytes);
    assert_int_equal(r.peak, h.peak_bytes);
    assert_int_equal(h.live_bytes, 6 * PAGE);
    profile_free(profile);
    close_pen(&p);
    end();
}

/* One block in each of so many functions; the last ones have the largest. */
static void allocate_everywhere(struct pen *p, uint32_t functions, uint64_t address)
{
    for (uint32_t i = 1; i <= functions; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        define(p, i, name, i);
        put(p, ringmem_push(i, 0));
        put_alloc(p, address + 8ull * i, 100 + i, i);
        put(p, ringmem_word(RINGMEM_KEEP, 0));
    }
    publish(p);
}

struct told {
    const struct profile *profile;
    uint32_t pid;
    uint64_t checkpoints, sites, bytes, peak_bytes, beyond, largest;
};

static int on_told(void *ctx, const struct record_memory *m)
{
    struct told *t = ctx;
    t->checkpoints += profile_tables(t->profile)->processes[m->process].pid == t->pid;
    return 0;
}

static int on_told_site(void *ctx, const struct record_memory *m, const struct record_site *site)
{
    struct told *t = ctx;
    const struct profile_tables *tables = profile_tables(t->profile);
    if (tables->processes[m->process].pid != t->pid)
        return 0;
    const struct record_code *code = &tables->codes[tables->node_code[site->stack]];
    t->sites++;
    t->bytes += site->bytes;
    t->peak_bytes += site->peak_bytes;
    if (code->flags & RECORD_CODE_SPECIAL)
        t->beyond += site->bytes;
    else
        t->largest += site->bytes;
    return 0;
}

/* Where the room is used up a child tells its largest sites, and the sum of all others; the first process tells all. */
static void test_children_beyond_the_room(void **state ATTR_UNUSED)
{
    enum { FUNCTIONS = 300, SITES = 32, ALL = FUNCTIONS * 100 + FUNCTIONS * (FUNCTIONS + 1) / 2 };
    static const struct profile_memory_visitor visitor = {.memory = on_told, .site = on_told_site};
    struct file f;
    begin(RING_HEAP);
    session.keeps_memory_events = false;
    open_file(&f);
    struct pen p = open_pen(0, 0, IMAGE);
    struct pen q = open_pen_of((uint32_t)getppid(), 1, 1, IMAGE);
    heaps->written_bytes = 1 << 30;
    allocate_everywhere(&p, FUNCTIONS, BLOCK);
    allocate_everywhere(&q, FUNCTIONS, BLOCK);
    turn(ALWAYS, false); /* the child is younger than a second: no checkpoint yet */
    assert_int_equal(process(1)->snapshots.len, 0);
    finish();
    carry(&f, true);
    struct profile *profile = close_file(&f);
    struct told parent = {.profile = profile, .pid = (uint32_t)getpid()};
    struct told child = {.profile = profile, .pid = (uint32_t)getppid()};
    assert_int_equal(profile_each_memory(profile, &visitor, &parent, NULL), 0);
    assert_int_equal(profile_each_memory(profile, &visitor, &child, NULL), 0);
    assert_int_equal(parent.sites, FUNCTIONS);
    assert_int_equal(parent.bytes, ALL);
    assert_int_equal(parent.beyond, 0);
    assert_int_equal(child.checkpoints, 1);
    assert_int_equal(child.sites, SITES + 1); /* the largest by bytes are those by the peak, too */
    assert_int_equal(child.bytes, ALL);
    assert_int_equal(child.peak_bytes, ALL);
    assert_int_equal(child.largest, SITES * (100 + FUNCTIONS) - SITES * (SITES - 1) / 2);
    profile_free(profile);
    close_pen(&p);
    close_pen(&q);
    end();
}

/* Code that says the same as another is that one, also where its number was used before its definition came. */
static void test_equal_codes(void **state ATTR_UNUSED)
{
    begin(RING_HEAP);
    struct pen p = open_pen(0, 0, IMAGE), q = open_pen(1, 1, IMAGE);
    define(&p, 1, "main", 5);
    put(&p, ringmem_push(1, 0));
    put_alloc(&p, BLOCK, 64, 1);
    put(&q, ringmem_push(2, 0));
    put_alloc(&q, BLOCK + 64, 64, 2);
    turn(ALWAYS, false);
    assert_null(heaps_find_code(heaps, 2));
    define(&p, 2, "main", 5);
    define(&p, 3, "main", 6);
    put(&p, ringmem_word(RINGMEM_KEEP, 0));
    put(&p, ringmem_push(2, 0));
    put_alloc(&p, BLOCK + 128, 64, 3);
    turn(ALWAYS, false);
    assert_ptr_equal(heaps_find_code(heaps, 2), heaps_find_code(heaps, 1));
    assert_ptr_not_equal(heaps_find_code(heaps, 3), heaps_find_code(heaps, 1));
    assert_int_equal(heaps->codes.len, 2);
    assert_int_equal(heaps_known_code(heaps, 2), 1);
    const struct heap *h = &process(0)->heap;
    assert_int_equal(h->sites.len, 2); /* the third block is of the first one's site */
    assert_int_equal(h->sites.data[0].sums.count, 2);
    finish();
    close_pen(&p);
    close_pen(&q);
    end();
}

static int make_path(void **state ATTR_UNUSED)
{
    int fd = mkstemp(path);
    return fd < 0 || close(fd) < 0 ? -1 : 0;
}

static int remove_path(void **state ATTR_UNUSED)
{
    return unlink(path);
}

/* --- how much is written --- */

/* Checkpoints of some processes that run side by side, for so long, with a mark every so often: bytes of all. */
static uint64_t written_by(uint32_t processes, uint64_t each, uint64_t seconds,
                           uint64_t mark_every_ms)
{
    enum { STEP_MS = 100 };
    uint64_t last[16] = {0}, written = 0, marks = 0;
    for (uint64_t ms = STEP_MS; ms <= 1000 * seconds; ms += ms < 600000 ? STEP_MS : ms / 10000) {
        for (uint64_t most = mark_every_ms ? ms / mark_every_ms : 0; marks < most; marks++)
            if (heaps_wants_mark(marks + 1, each, written))
                written += each;
        for (uint32_t p = 0; p < processes; p++)
            if (heaps_is_due(ms * NS_PER_MS, (ms - last[p]) * NS_PER_MS, each, written)) {
                written += each;
                last[p] = ms;
            }
    }
    return written;
}

static void test_the_file_stays_small(void **unused)
{
    (void)unused;
    static const uint64_t seconds[] = {10, 3600, 2592000};
    static const uint64_t sizes[] = {160, 16000, 160000, 640000};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) {
            assert_in_range(written_by(1, sizes[k], seconds[i], 0), sizes[k], 13 << 20);
            assert_in_range(written_by(1, sizes[k], seconds[i], 1000), sizes[k], 15 << 20);
            assert_in_range(written_by(8, sizes[k], seconds[i], 1000), sizes[k], 24 << 20);
        }
    /* and is written: a checkpoint a second at first, every mark of a short loop */
    assert_in_range(written_by(1, 100, 60, 0) / 100, 50, 80);
    assert_in_range(written_by(1, 100, 60, 1000) / 100, 110, 140);
}

/* Beside the checkpoints stand the counters of the recording, which are looked at twice a second. */
static void test_counters_stay_small(void **unused)
{
    (void)unused;
    const uint64_t year = 365ull * 86400 * NS_PER_SEC,
                   chunk = 600; /* bytes, and more than they take */
    uint64_t written = 0, last = 0, within_a_minute = 0;
    for (uint64_t now = NS_PER_SEC / 2;
         now<year; now += now> 3600 * NS_PER_SEC ? now / 1000 : NS_PER_SEC / 2) {
        if (last && now - last < facts_stats_age(now))
            continue;
        written += chunk;
        within_a_minute += now <= 50 * NS_PER_SEC;
        last = now;
    }
    assert_in_range(written, chunk, 1 << 20);
    assert_int_equal(within_a_minute, 100); /* and a short run loses as little as it did */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_stay_small),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_order_of_stamps),
        cmocka_unit_test(test_unmet_ring),
        cmocka_unit_test(test_writing_holds_back),
        cmocka_unit_test(test_temporaries),
        cmocka_unit_test(test_closed_ring),
        cmocka_unit_test(test_last_checkpoint),
        cmocka_unit_test(test_lives_on),
        cmocka_unit_test(test_exec_without_us),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_nonsense_is_counted),
        cmocka_unit_test(test_bad_heads),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_equal_codes),
        cmocka_unit_test(test_children_beyond_the_room),
        cmocka_unit_test(test_the_file_stays_small),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
