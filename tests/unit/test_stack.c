/* The frame walker over invented processes (fakepython.h): still ones, fluttering ones, broken
 * ones.
 *
 * With PYROMETER_WRITE_SEEDS=FOLDER it writes the images of its processes there instead, as seeds
 * for tests/fuzz/fuzz_walker.c. */
#include "base/err.h"
#include "fakepython.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/unit/data"
#endif

enum { VERSIONS = 8, FIRST_DEBUG = 5 };

static struct fake fake; /* one at a time: it is large */

/* 3.8 … 3.12 by their tables, 3.13 … 3.15 by what real ones say of themselves. */
static void init_version(int index)
{
    uint8_t debug[PYLAYOUT_PROBE_BYTES];
    size_t len = 0;
    struct pylayout l;
    if (index < FIRST_DEBUG) {
        l = *pylayout_table_at((size_t)index);
    } else {
        char path[256];
        snprintf(path, sizeof path, TEST_DATA_DIR "/debug_offsets_3.%d.bin", 8 + index);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        len = fread(debug, 1, sizeof debug, file);
        fclose(file);
        assert_int_equal(pylayout_from_debug_offsets(debug, len, &l), 0);
    }
    fake_init(&fake, &l, debug, len);
}

static void init_3_12(void)
{
    init_version(4);
}

static struct remote *open_fake(void)
{
    struct remote *r = fake_open(&fake);
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread_count(r), 1);
    return r;
}

static const char *name_of(const struct remote *r, const struct remote_frame *f)
{
    return f->code == REMOTE_CODE_UNREADABLE ? "?" : remote_code(r, f->code)->name;
}

/* "main:11 work:21", root first. */
static const char *as_text(const struct remote *r, const struct remote_sample *s)
{
    static char text[4096];
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = s->depth; i-- > 0 && at < sizeof text - 64;)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s:%d", at ? " " : "",
                               name_of(r, &s->frames[i]), s->frames[i].line);
    return text;
}

/* Whatever the walker did, what it gives back is in range. */
static struct remote_sample sample_ok(struct remote *r)
{
    struct remote_sample s;
    assert_int_equal(remote_sample_thread(r, 0, &s), 0);
    assert_true(s.depth <= REMOTE_MAX_FRAMES + 1 && s.shared <= s.depth);
    assert_in_range(s.tries, 1, REMOTE_MAX_TRIES);
    return s;
}

/* main, work, leaf, under a shim where the version has them. */
static int build_three(void)
{
    int depth = 0;
    if (fake.l.shim_owner_min)
        fake_frame(&fake, depth++, FAKE_SHIM, 0);
    fake_frame(&fake, depth++, (int64_t)fake_code(&fake, "main", 10), 0);
    fake_frame(&fake, depth++, (int64_t)fake_code(&fake, "work", 20), 4);
    fake_frame(&fake, depth, (int64_t)fake_code(&fake, "leaf", 30), 2);
    fake_top(&fake, depth);
    return depth;
}

/* --- a target that holds still --- */

static void test_every_version(void **state ATTR_UNUSED)
{
    for (int v = 0; v < VERSIONS; v++) {
        init_version(v);
        int leaf = build_three();
        struct remote *r = open_fake();
        struct remote_sample s = sample_ok(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30");
        assert_false(s.moving || s.damaged || s.unchanged);
        assert_true(s.gil_known && s.holds_gil);
        assert_string_equal(remote_code(r, s.frames[0].code)->file, "app.py");

        s = sample_ok(r);
        assert_true(s.unchanged);
        assert_int_equal(s.shared, 3);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30");

        /* only the running frame got to another line */
        fake_frame(&fake, leaf, (int64_t)fake_get(&fake, fake_slot(&fake, leaf), fake.l.frame.code),
                   4);
        s = sample_ok(r);
        assert_false(s.unchanged);
        assert_int_equal(s.shared, 2);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:31");

        fake_top(&fake, leaf - 1); /* it returned */
        s = sample_ok(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21");
        assert_int_equal(s.shared, 2);
        fake_top(&fake, -1);
        s = sample_ok(r);
        assert_int_equal(s.depth, 0);
        assert_false(s.moving || s.damaged);
        remote_close(r);
    }
}

static void test_gil(void **state ATTR_UNUSED)
{
    for (int v = 0; v < VERSIONS; v++) {
        init_version(v);
        build_three();
        fake_put(&fake, FAKE_BASE, fake.l.runtime.tstate_current, 0);
        fake_put32(&fake, fake.gil, fake.l.gil.locked, 0);
        struct remote *r = open_fake();
        struct remote_sample s = sample_ok(r);
        assert_true(s.gil_known && !s.holds_gil);
        uint64_t begin = 0, end = 0;
        assert_true(remote_gil_range(r, 0, &begin, &end));
        assert_int_equal(end - begin, fake.l.gil.size);
        remote_close(r);
    }
}

/* An interpreter that starts has its first thread before its lock; who met it then still learns of the lock. */
static void test_gil_comes_later(void **state ATTR_UNUSED)
{
    for (int v = 0; v < VERSIONS; v++) {
        init_version(v);
        if (fake.l.interp.gil == PYL_NONE)
            continue;
        build_three();
        fake_put(&fake, fake.interp, fake.l.interp.gil, 0);
        struct remote *r = open_fake();
        struct remote_sample s = sample_ok(r);
        assert_false(s.gil_known || s.holds_gil);
        fake_put(&fake, fake.interp, fake.l.interp.gil, fake.gil);
        assert_int_equal(remote_refresh_threads(r), 0);
        usleep(1000); /* it is not asked for at every sample */
        s = sample_ok(r);
        assert_true(s.gil_known && s.holds_gil);
        remote_close(r);
    }
}

static _Atomic pid_t other_task; /* task of this process; 0: it is to end */

static void *stay(void *argument ATTR_UNUSED)
{
    for (other_task = gettid(); other_task;)
        usleep(1000);
    return NULL;
}

/* A thread state and an ident that a thread has left behind are often the next one's. If the kernel says that the first has ended, the
 * two are told apart. */
static void test_another_in_its_place(void **state ATTR_UNUSED)
{
    init_3_12();
    build_three();
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, stay, NULL), 0);
    while (!other_task)
        usleep(1000);
    uint32_t offset = fake.l.tstate.native_thread_id;
    fake_put(&fake, fake.tstate, offset, (uint64_t)getpid());
    struct remote *r = fake_open(&fake);
    r->mem.pid = getpid(); /* whose tasks are asked for */
    assert_int_equal(remote_refresh_threads(r), 0);
    uint32_t serial = remote_thread(r, 0)->serial;
    assert_int_equal(remote_thread(r, 0)->tid, getpid());
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread(r, 0)->serial, serial);
    remote_thread_has_ended(r, 0); /* but the list has it, and it has a task: so it is a mistake */
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread(r, 0)->serial, serial);
    fake_put(&fake, fake.tstate, offset, (uint64_t)other_task);
    remote_thread_has_ended(r, 0);
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread_count(r), 1);
    assert_int_not_equal(remote_thread(r, 0)->serial, serial);
    assert_int_equal(remote_thread(r, 0)->tid, other_task);
    sample_ok(r);
    remote_close(r);
    other_task = 0;
    pthread_join(other, NULL);
}

/* Frames in two chunks of the data stack, and one that lives elsewhere, as a generator's does. */
static void test_chunks_and_strays(void **state ATTR_UNUSED)
{
    init_3_12();
    int leaf = build_three();
    uint64_t second = fake_new(&fake, 512), stray = fake_new(&fake, FAKE_SLOT + 16) + 16;
    uint64_t code = fake_code(&fake, "gen", 50);
    fake_put(&fake, second, fake.l.chunk.previous, fake.chunk);
    fake_put(&fake, second, fake.l.chunk.size, 512);
    fake_put(&fake, fake.tstate, fake.l.tstate.datastack_chunk, second);
    uint64_t top = second + 64;
    memcpy(fake_at(&fake, stray), fake_at(&fake, fake_slot(&fake, leaf)), FAKE_SLOT);
    fake_put(&fake, stray, fake.l.frame.code, code);
    fake_put(&fake, stray, fake.l.frame.instr, fake_instr(&fake, code, 4));
    fake_put(&fake, stray, fake.l.frame.previous, fake_slot(&fake, leaf));
    fake_running(&fake, leaf, false);
    fake_put32(&fake, stray, fake.l.frame.stacktop, 1);
    *fake_at(&fake, stray + fake.l.frame.owner) = PYL_OWNER_GENERATOR;
    *fake_at(&fake, stray - fake.l.frame.generator_state) = (uint8_t)fake.l.frame.generator_runs;
    memcpy(fake_at(&fake, top), fake_at(&fake, fake_slot(&fake, leaf)), FAKE_SLOT);
    fake_put(&fake, top, fake.l.frame.previous, stray);
    fake_put32(&fake, top, fake.l.frame.stacktop, UINT32_MAX); /* it runs, the others wait */
    fake_put(&fake, fake.cframe, fake.l.cframe.current_frame, top);
    struct remote *r = open_fake();
    for (int i = 0; i < 3; i++) {
        struct remote_sample s = sample_ok(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30 gen:51 leaf:30");
        assert_false(s.moving || s.damaged);
    }
    remote_close(r);
}

/* --- a target that runs --- */

/* main calls a1 calls a2 calls a3, then b1, b2, b3, in turns, as the interpreter does it: a return
 * moves the top, a call writes the frame field by field and then moves the top. */
struct flutter {
    uint64_t code[2][4]; /* of the chains at depth 1 to 3 */
    int chain, depth;
    bool down;         /* returning */
    unsigned rest;     /* words for which the leaf still runs */
    unsigned dwell;    /* the mean of that */
    unsigned patience; /* a step in so many words */
};

static void flutter_step(struct fake *f)
{
    struct flutter *t = f->ctx;
    if (t->rest) {
        t->rest--;
        return;
    }
    if (fake_random(f) % t->patience)
        return;
    if (t->down) {
        fake_top(f, --t->depth);
        if (t->depth == 0) {
            t->down = false;
            t->chain = !t->chain;
        }
        return;
    }
    t->depth++;
    fake_frame(f, t->depth, (int64_t)t->code[t->chain][t->depth], 0);
    fake_top(f, t->depth);
    if (t->depth == 3) {
        t->down = true;
        t->rest = (unsigned)(fake_random(f) % ((uint64_t)2 * t->dwell));
    }
}

static void start_flutter(struct flutter *t)
{
    for (int chain = 0; chain < 2; chain++) {
        for (int depth = 1; depth <= 3; depth++) {
            char name[8];
            snprintf(name, sizeof name, "%c%d", "ab"[chain], depth);
            t->code[chain][depth] = fake_code(&fake, name, 100);
        }
    }
    fake_frame(&fake, 0, (int64_t)fake_code(&fake, "main", 10), 0);
    fake_top(&fake, 0);
    fake.ctx = t;
    fake.run = flutter_step;
}

/* main, and above it frames of one chain in their order. */
static bool is_possible(const struct remote *r, const struct remote_sample *s)
{
    if (s->depth < 1 || strcmp(name_of(r, &s->frames[s->depth - 1]), "main") != 0)
        return false;
    for (uint32_t depth = 1; depth < s->depth; depth++) {
        const char *name = name_of(r, &s->frames[s->depth - 1 - depth]);
        if (name[0] != name_of(r, &s->frames[s->depth - 2])[0] || name[1] != (char)('0' + depth))
            return false;
    }
    return true;
}

struct tally {
    unsigned impossible, marked, whole;
};

/* A look copies some 50 to 250 words. The real thing takes about as long for a call as for copying
 * 100 words; `patience` is that number here, and `dwell` how many words' time a leaf runs. */
static struct tally flutter_samples(unsigned count, unsigned patience, unsigned dwell, bool unsafe)
{
    struct flutter t = {.dwell = dwell, .patience = patience};
    struct tally tally = {0};
    start_flutter(&t);
    struct remote *r = open_fake();
    remote_set_unsafe(r, unsafe);
    for (unsigned i = 0; i < count; i++) {
        struct remote_sample s = sample_ok(r);
        tally.marked += s.moving;
        tally.impossible += !s.moving && !is_possible(r, &s);
        tally.whole += !s.moving && s.depth == 4;
        for (uint64_t k = fake_random(&fake) % 4096; k--;) /* time passes between samples */
            flutter_step(&fake);
    }
    remote_close(r);
    return tally;
}

static void check_flutter(int version)
{
    enum { COUNT = 5000 };
    /* leaves of many looks' length: nearly every sample comes whole */
    init_version(version);
    struct tally t = flutter_samples(COUNT, 32, 8000, false);
    assert_int_equal(t.impossible, 0);
    assert_true(t.marked < COUNT / 50);
    assert_true(t.whole > COUNT * 9 / 10);
    /* leaves shorter than a look: little can be believed, and what cannot is marked */
    static const unsigned short_ones[][2] = {{128, 60}, {32, 60}, {32, 180}, {8, 540}};
    unsigned marked = 0;
    for (size_t i = 0; i < ARRAY_LEN(short_ones); i++) {
        init_version(version);
        t = flutter_samples(COUNT, short_ones[i][0], short_ones[i][1], false);
        assert_int_equal(t.impossible, 0);
        marked += t.marked;
    }
    /* what is known for a while is believed sooner: 12 % are marked here, 1 % on a slow machine. Where frames lie on a data stack one look
     * is enough for most of them */
    if (fake.l.frames == PYL_FRAMES_HEAP)
        assert_true(marked > COUNT / 100);
    /* without the check the same target shows torn stacks, or all this proved nothing */
    init_version(version);
    t = flutter_samples(COUNT, 32, 60, true);
    assert_true(t.impossible > 0);
    assert_int_equal(t.marked, 0);
}

static void test_flutter_3_8(void **state ATTR_UNUSED)
{
    check_flutter(0);
}

static void test_flutter_3_12(void **state ATTR_UNUSED)
{
    check_flutter(4);
}

static void test_flutter_3_13(void **state ATTR_UNUSED)
{
    check_flutter(FIRST_DEBUG);
}

/* The frame at depth 2 runs one of so many code objects of a list, another one at each read. */
static void turn_leaf(struct fake *f, unsigned count)
{
    uint64_t at = fake_slot(f, 2);
    uint64_t code = fake_get(f, (uint64_t)(uintptr_t)f->ctx, (uint32_t)(8 * (f->calls % count)));
    fake_put(f, at, f->l.frame.code, code);
    if (f->l.instr == PYL_INSTR_BYTE_INDEX)
        fake_put32(f, at, f->l.frame.instr, 0);
    else
        fake_put(f, at, f->l.frame.instr, fake_instr(f, code, 0));
}

static void turn_in_pairs(struct fake *f)
{
    turn_leaf(f, 2);
}

static void turn_in_threes(struct fake *f)
{
    turn_leaf(f, 3); /* between two looks there may be another read */
}

/* main calls work, which calls what is never twice the same. */
static void turn_for_ever(void)
{
    uint64_t list = fake_new(&fake, 24);
    fake_put(&fake, list, 0, fake_code(&fake, "tick", 50));
    fake_put(&fake, list, 8, fake_code(&fake, "tack", 55));
    fake_put(&fake, list, 16, fake_code(&fake, "tock", 60));
    fake_frame(&fake, 0, (int64_t)fake_code(&fake, "main", 10), 0);
    fake_frame(&fake, 1, (int64_t)fake_code(&fake, "work", 20), 0);
    fake_frame(&fake, 2, (int64_t)fake_get(&fake, list, 0), 0);
    fake_top(&fake, 2);
    fake.ctx = (void *)(uintptr_t)list;
    fake.run = turn_in_threes;
}

/* Marked, and cut to the outer part that held still. */
static void test_always_moving(void **state ATTR_UNUSED)
{
    init_version(0);
    turn_for_ever();
    struct remote *r = open_fake();
    struct remote_sample s = {0};
    for (int i = 0; i < 5; i++) {
        s = sample_ok(r);
        assert_true(s.moving);
        assert_in_range(s.tries, 2, REMOTE_MAX_TRIES);
        assert_string_equal(as_text(r, &s), "main:10 work:20");
    }
    fake.run = NULL; /* it comes to rest */
    s = sample_ok(r);
    assert_false(s.moving);
    assert_int_equal(s.depth, 3);
    remote_close(r);
}

/* main, work and leaf, proven twice, of old code. */
static struct remote *open_proven(void)
{
    fake_frame(&fake, 0, (int64_t)fake_code(&fake, "main", 10), 0);
    fake_frame(&fake, 1, (int64_t)fake_code(&fake, "work", 20), 0);
    fake_frame(&fake, 2, (int64_t)fake_code(&fake, "leaf", 30), 0);
    struct remote *r = open_fake();
    for (int i = 0; i < 6; i++) {
        fake_top(&fake, i % 2 ? 2 : 1);
        sample_ok(r);
    }
    for (size_t i = 0; i < r->entries.len; i++) {
        r->entries.data[i].confirmed = UINT32_MAX / 2;
        r->entries.data[i].met_ns = 0;
    }
    return r;
}

/* Frames far apart, which are read one by one, and then a stack that is never believed: what the looks copy shrinks to that. */
static void test_plan_forgets_without_belief(void **state ATTR_UNUSED)
{
    enum { GAP = 70, FAR = 3, SAMPLES = 60 }; /* each on another page, and none beside */
    init_version(0);
    fake_new(&fake, (size_t)(FAR * GAP + 1 - FAKE_FRAMES) * FAKE_SLOT);
    fake_frame(&fake, 0, (int64_t)fake_code(&fake, "main", 10), 0);
    for (int i = 1, before = 0; i <= FAR; before = i++ * GAP) {
        fake_frame(&fake, i * GAP, (int64_t)fake_code(&fake, "start", 20), 0);
        fake_put(&fake, fake_slot(&fake, i * GAP), fake.l.frame.previous, fake_slot(&fake, before));
    }
    fake_top(&fake, FAR * GAP);
    struct remote *r = open_fake();
    struct remote_sample s = sample_ok(r);
    assert_int_equal(s.depth, FAR + 1);
    const struct thread *t = r->threads.data[0];
    assert_int_equal(t->regions.len, FAR + 1);
    turn_for_ever();
    for (int i = 0; i < SAMPLES; i++)
        assert_true(sample_ok(r).moving);
    assert_int_equal(t->regions.len, 1);
    remote_close(r);
}

/* Two that take turns, of which one is known, and the other never rests for as long as the proof takes: the first has no more than the
 * samples that begin with it, and the others are marked. */
static void test_known_does_not_stand_for_unknown(void **state ATTR_UNUSED)
{
    enum { SAMPLES = 400 };
    init_version(0);
    struct remote *r = open_proven();
    uint64_t list = fake_new(&fake, 16);
    fake_put(&fake, list, 0, fake_get(&fake, fake_slot(&fake, 2), fake.l.frame.code));
    fake_put(&fake, list, 8, fake_code(&fake, "other", 50));
    fake_top(&fake, 2);
    fake.ctx = (void *)(uintptr_t)list;
    fake.run = turn_in_pairs;
    unsigned known = 0, other = 0;
    for (int i = 0; i < SAMPLES; i++) {
        fake.calls += fake_random(&fake) % 2;
        struct remote_sample s = sample_ok(r);
        known += !s.moving && strcmp(as_text(r, &s), "main:10 work:20 leaf:30") == 0;
        other += !s.moving && strcmp(as_text(r, &s), "main:10 work:20 other:50") == 0;
    }
    assert_int_equal(other, 0);
    assert_in_range(known, SAMPLES / 3, SAMPLES * 2 / 3);
    remote_close(r);
}

static void go_to(struct fake *f, int depth, uint32_t offset)
{
    uint64_t code = fake_get(f, fake_slot(f, depth), f->l.frame.code);
    fake_frame(f, depth, (int64_t)code, offset);
}

/* Leaf and work return when the top of the stack has been read and its frames have not. */
static void return_behind_the_top(struct fake *f)
{
    uint64_t *words = f->ctx;
    if (++*words != (f->l.tstate.size + 7) / 8 + 1)
        return;
    go_to(f, 1, 4);
    go_to(f, 0, 4);
    fake_top(f, 0);
}

static void test_returning(void **state ATTR_UNUSED)
{
    init_version(5); /* 3.13: the top is in the thread state */
    struct remote *r = open_proven();
    struct remote_sample s = {0};
    uint64_t words;
    fake.ctx = &words;
    for (int i = 0; i < 10; i++) {
        go_to(&fake, 0, 0);
        go_to(&fake, 1, 0);
        fake_top(&fake, 1);
        sample_ok(r); /* so that leaf is not the sample before */
        fake_top(&fake, 2);
        words = 0;
        fake.run = return_behind_the_top;
        s = sample_ok(r);
        fake.run = NULL;
        /* as it was when the frames were read */
        assert_false(s.moving);
        assert_string_equal(as_text(r, &s), "main:11");
    }
    s = sample_ok(r);
    assert_string_equal(as_text(r, &s), "main:11");
    /* and now there is another call */
    fake_top(&fake, 2);
    s = sample_ok(r);
    assert_string_equal(as_text(r, &s), "main:11 work:21 leaf:30");
    remote_close(r);
}

static void call_and_return(struct fake *f)
{
    if (fake_random(f) % 64 == 0)
        fake_top(f, (int)(1 + fake_random(f) % 2));
}

/* A call that stands just behind a known one is not a return from that one. */
static void test_called_again(void **state ATTR_UNUSED)
{
    init_version(5);
    struct remote *r = open_proven();
    go_to(&fake, 0, 4);
    fake_top(&fake, 2);
    struct remote_sample s = sample_ok(r);
    assert_string_equal(as_text(r, &s), "main:11 work:20 leaf:30");
    remote_close(r);

    init_version(5); /* though what it called is not two looks in the same place */
    r = open_proven();
    go_to(&fake, 0, 4);
    fake.run = call_and_return;
    for (int i = 0; i < 200; i++) {
        s = sample_ok(r);
        assert_true((s.moving && s.depth == 0) || strncmp(as_text(r, &s), "main:11", 7) == 0);
    }
    remote_close(r);
}

/* Which frame is the newest, by the pointer that is read first. */
static void point_at(int depth)
{
    bool cframe = fake.l.frames == PYL_FRAMES_CFRAME;
    fake_put(&fake, cframe ? fake.cframe : fake.tstate,
             cframe ? fake.l.cframe.current_frame : fake.l.tstate.frame, fake_slot(&fake, depth));
}

/* A sample of a thread that has not been where it was. */
static struct remote_sample sample_flowing(struct remote *r)
{
    r->threads.data[0]->flows = true;
    return sample_ok(r);
}

/* The pointer is older than the frames. They tell what has been called and what has been returned from since. */
static void test_frames_tell(void **state ATTR_UNUSED)
{
    for (int v = 3; v < VERSIONS; v++) {
        init_version(v);
        int leaf = build_three();
        struct remote *r = open_fake();
        sample_ok(r);
        fake_frame(&fake, leaf + 1, (int64_t)fake_code(&fake, "other", 50), 2);
        fake_top(&fake, leaf + 1);
        point_at(leaf - 1);
        struct remote_sample s = sample_flowing(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30 other:50");
        assert_false(s.moving);
        fake_top(&fake, leaf - 1);
        point_at(leaf + 1);
        s = sample_flowing(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21");
        assert_false(s.moving);
        remote_close(r);
    }
}

static void litter(struct fake *f)
{
    uint64_t behind = *(uint64_t *)f->ctx;
    static const uint64_t left[] = {1, FAKE_BASE, 0x7f0012345678, 0x7f0087654320};
    fake_put(f, behind, f->l.frame.code, left[fake_random(f) % ARRAY_LEN(left)]);
    fake_put32(f, behind, f->l.frame.stacktop, UINT32_MAX);
}

/* Behind the newest frame there may be anything, and it may change all the time. */
static void test_litter(void **state ATTR_UNUSED)
{
    for (int v = 3; v < VERSIONS; v++) {
        init_version(v);
        uint64_t behind = fake_slot(&fake, build_three() + 1);
        struct remote *r = open_fake();
        fake.ctx = &behind;
        fake.run = litter;
        for (int i = 0; i < 20; i++) {
            struct remote_sample s = sample_flowing(r);
            assert_true(i < 3 || !s.moving); /* until it is known to be that */
            assert_true(s.moving || strcmp(as_text(r, &s), "main:10 work:21 leaf:30") == 0);
        }
        fake.run = NULL; /* and then there is a call */
        int top = fake.frames;
        fake_frame(&fake, top, (int64_t)fake_code(&fake, "above", 50), 2);
        fake_top(&fake, top);
        sample_flowing(r);
        struct remote_sample s = sample_flowing(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30 above:50");
        remote_close(r);
    }
}

/* What was called by the last frame of a chunk is in the next one, and what is left behind that frame is not there. */
static void test_next_chunk(void **state ATTR_UNUSED)
{
    for (int v = 3; v < VERSIONS; v++) {
        init_version(v);
        int leaf = build_three(); /* leaf is what is left there */
        fake_top(&fake, leaf - 1);
        uint64_t second = fake_new(&fake, 512), top = second + fake.l.chunk.data;
        fake_put(&fake, second, fake.l.chunk.previous, fake.chunk);
        fake_put(&fake, second, fake.l.chunk.size, 512);
        memcpy(fake_at(&fake, top), fake_at(&fake, fake_slot(&fake, leaf - 1)), FAKE_SLOT);
        uint64_t code = fake_code(&fake, "above", 50);
        fake_put(&fake, top, fake.l.frame.code, code);
        fake_put(&fake, top, fake.l.frame.instr, fake_instr(&fake, code, 2));
        fake_put(&fake, top, fake.l.frame.previous, fake_slot(&fake, leaf - 1));
        fake_running(&fake, leaf - 1, false);
        fake_put(&fake, fake.tstate, fake.l.tstate.datastack_chunk, second);
        struct remote *r = open_fake();
        for (int i = 0; i < 3; i++) {
            struct remote_sample s = sample_flowing(r);
            assert_string_equal(as_text(r, &s), "main:10 work:21 above:50");
            assert_false(s.moving);
        }
        remote_close(r);
    }
}

/* A generator that has yielded is on no stack, whatever the pointer says, and keeps the caller that it had. */
static void test_yielded(void **state ATTR_UNUSED)
{
    for (int v = 3; v < VERSIONS; v++) {
        init_version(v);
        int leaf = build_three();
        uint64_t frame = fake_new(&fake, FAKE_SLOT + 16) + 16;
        uint64_t code = fake_code(&fake, "gen", 50);
        memcpy(fake_at(&fake, frame), fake_at(&fake, fake_slot(&fake, leaf)), FAKE_SLOT);
        fake_put(&fake, frame, fake.l.frame.code, code);
        fake_put(&fake, frame, fake.l.frame.instr, fake_instr(&fake, code, 2));
        fake_put(&fake, frame, fake.l.frame.previous, fake_slot(&fake, leaf));
        *fake_at(&fake, frame + fake.l.frame.owner) = PYL_OWNER_GENERATOR;
        uint8_t *does = fake_at(&fake, frame - fake.l.frame.generator_state);
        *does = (uint8_t)fake.l.frame.generator_runs;
        bool cframe = fake.l.frames == PYL_FRAMES_CFRAME;
        fake_put(&fake, cframe ? fake.cframe : fake.tstate,
                 cframe ? fake.l.cframe.current_frame : fake.l.tstate.frame, frame);
        fake_running(&fake, leaf, false);
        struct remote *r = open_fake();
        struct remote_sample s = sample_flowing(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30 gen:50");
        fake_running(&fake, leaf, true);
        *does = (uint8_t)(fake.l.frame.generator_runs + 1);
        s = sample_flowing(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30");
        assert_false(s.moving);
        remote_close(r);
    }
}

/* Code made by exec() dies young, and its memory is used again for another one. */
static void test_code_replaced(void **state ATTR_UNUSED)
{
    init_version(3); /* 3.11, whose code objects have no number */
    uint64_t code = fake_code(&fake, "first", 10);
    fake_frame(&fake, 0, (int64_t)code, 0);
    fake_top(&fake, 0);
    struct remote *r = open_fake();
    struct remote_sample s = sample_ok(r);
    assert_string_equal(as_text(r, &s), "first:10");
    uint32_t old = s.frames[0].code;
    uint64_t name = fake_str(&fake, "second");
    fake_put(&fake, code, fake.l.code.name, name);
    fake_put(&fake, code, fake.l.code.qualname, name);
    s = sample_ok(r);
    assert_string_equal(as_text(r, &s), "second:10");
    assert_false(s.unchanged);
    assert_int_not_equal(s.frames[0].code, old);

    /* even the name's memory was used again: only its hash tells */
    memcpy(fake_at(&fake, name + fake.l.unicode.ascii_size), "thirds", 6);
    fake_put(&fake, name, fake.l.unicode.length + 8, 12345);
    s = sample_ok(r);
    assert_string_equal(as_text(r, &s), "thirds:10");
    remote_close(r);
}

/* From 3.12 on it is its number that tells, when all else is the same. */
static void test_code_replaced_by_its_like(void **state ATTR_UNUSED)
{
    init_3_12();
    uint64_t code = fake_code(&fake, "first", 10);
    fake_frame(&fake, 0, (int64_t)code, 0);
    fake_top(&fake, 0);
    struct remote *r = open_fake();
    uint32_t old = sample_ok(r).frames[0].code;
    assert_int_equal(sample_ok(r).frames[0].code, old);
    fake_put32(&fake, code, fake.l.code.version, ++fake.codes);
    struct remote_sample s = sample_ok(r);
    assert_int_not_equal(s.frames[0].code, old);
    assert_string_equal(as_text(r, &s), "first:10");
    remote_close(r);
}

/* --- a target that is broken --- */

static void check_damaged(struct remote *r, const char *text)
{
    for (int i = 0; i < 3; i++) {
        struct remote_sample s = sample_ok(r);
        assert_false(s.moving);
        assert_true(s.damaged);
        assert_string_equal(as_text(r, &s), text);
    }
    remote_close(r);
}

static void test_unreadable(void **state ATTR_UNUSED)
{
    for (int v = 0; v < VERSIONS; v++) {
        static const uint64_t nowhere[] = {0x7fff00000000, 0x13, UINT64_MAX, 1ull << 60};
        for (size_t i = 0; i < ARRAY_LEN(nowhere); i++) {
            /* the chain leads out of memory: what is above it is good */
            init_version(v);
            int leaf = build_three();
            fake_put(&fake, fake_slot(&fake, leaf - 1), fake.l.frame.previous, nowhere[i]);
            check_damaged(open_fake(), "?:0 work:21 leaf:30");
            /* a frame whose code is none */
            init_version(v);
            leaf = build_three();
            fake_put(&fake, fake_slot(&fake, leaf - 1), fake.l.frame.code, nowhere[i]);
            check_damaged(open_fake(), "main:10 ?:0 leaf:30");
        }
        /* something that is no code object: another type stands in its head */
        init_version(v);
        int leaf = build_three();
        uint64_t code = fake_get(&fake, fake_slot(&fake, leaf), fake.l.frame.code);
        fake_put(&fake, code, fake.l.object.ob_type, fake.interp);
        check_damaged(open_fake(), "main:10 work:21 ?:0");
        /* the very top is garbage */
        init_version(v);
        build_three();
        if (fake.l.frames != PYL_FRAMES_CFRAME) {
            fake_put(&fake, fake.tstate, fake.l.tstate.frame, nowhere[0]);
            check_damaged(open_fake(), "?:0");
        }
    }
}

static void test_cycles(void **state ATTR_UNUSED)
{
    for (int v = 0; v < VERSIONS; v++) {
        for (int back = 0; back < 3; back++) { /* to itself, to the next, to the leaf */
            init_version(v);
            int leaf = build_three();
            fake_put(&fake, fake_slot(&fake, leaf - 2), fake.l.frame.previous,
                     fake_slot(&fake, leaf - 2 + back));
            struct remote *r = open_fake();
            struct remote_sample s = sample_ok(r);
            assert_true(s.damaged || s.moving);
            if (s.damaged) {
                assert_int_equal(s.frames[s.depth - 1].code, REMOTE_CODE_UNREADABLE);
                assert_in_range(s.depth, 3, 10); /* it does not go round for ever */
            }
            assert_in_range(fake.calls, 1, 300);
            remote_close(r);
        }
    }
}

/* Below 3.11 frames lie anywhere. Those on neighbouring pages are read as one range, and when one of these pages is gone the frames on
 * the other are as good as before. */
static void test_neighbouring_pages(void **state ATTR_UNUSED)
{
    enum { PAGE = 4096, PAGES = 8, INSIDE = 512 };
    init_version(0);
    int leaf = build_three();
    uint64_t room = fake_new(&fake, (PAGES + 1) * (size_t)PAGE),
             page = (room + PAGE - 1) / PAGE * PAGE;
    uint64_t at[] = {page + INSIDE, page + PAGE + INSIDE, page + 5 * (uint64_t)PAGE};
    for (int i = 0; i < 3; i++) {
        memcpy(fake_at(&fake, at[i]), fake_at(&fake, fake_slot(&fake, leaf - 2 + i)), FAKE_SLOT);
        fake_put(&fake, at[i], fake.l.frame.previous, i ? at[i - 1] : 0);
    }
    fake_put(&fake, fake.tstate, fake.l.tstate.frame, at[2]);
    struct remote *r = open_fake();
    struct remote_sample s = {0};
    for (int i = 0; i < 200; i++) { /* until nothing is kept besides */
        fake.ranges = 0;
        s = sample_ok(r);
    }
    assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:30");
    assert_in_range(fake.ranges, 3, 4); /* the thread, perhaps who has the GIL, two regions */

    fake_put(&fake, at[2], fake.l.frame.previous, at[0]);
    fake.hole = page + PAGE, fake.hole_end = page + 2 * (uint64_t)PAGE;
    s = sample_ok(r);
    assert_false(s.damaged);
    assert_string_equal(as_text(r, &s), "main:10 leaf:30");
    remote_close(r);
}

static void test_names_and_tables_that_lie(void **state ATTR_UNUSED)
{
    static const uint64_t lengths[] = {UINT64_MAX, 1ull << 40, 1ull << 33, FAKE_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        init_3_12();
        int leaf = build_three();
        uint64_t code = fake_get(&fake, fake_slot(&fake, leaf), fake.l.frame.code);
        uint64_t name = fake_get(&fake, code, fake.l.code.name);
        uint64_t lines = fake_get(&fake, code, fake.l.code.linetable);
        fake_put(&fake, lines, fake.l.bytes.ob_size, lengths[i]);
        struct remote *r = open_fake();
        struct remote_sample s = sample_ok(r);
        assert_string_equal(as_text(r, &s), "main:10 work:21 leaf:0"); /* no lines, but a name */
        assert_false(s.damaged);
        remote_close(r);
        fake_put(&fake, name, fake.l.unicode.length, lengths[i]);
        check_damaged(open_fake(), "main:10 work:21 ?:0");
    }
}

static void test_gone(void **state ATTR_UNUSED)
{
    struct remote_sample s;
    init_3_12();
    build_three();
    struct remote *r = open_fake();
    sample_ok(r);
    fake.fails = -ESRCH;
    assert_int_equal(remote_sample_thread(r, 0, &s), E_NOPROC);
    assert_int_equal(remote_refresh_threads(r), E_NOPROC);
    assert_true(remote_threads_may_have_changed(r));
    fake.fails = -EPERM;
    assert_int_equal(remote_sample_thread(r, 0, &s), E_PERM);
    fake.fails = 0;
    assert_int_equal(remote_refresh_threads(r), 0);
    sample_ok(r);
    /* the thread ended, and its memory belongs to another one */
    fake_put(&fake, fake.tstate, fake.l.tstate.thread_id, FAKE_IDENT + 8);
    assert_int_equal(remote_sample_thread(r, 0, &s), E_NOTREADY);
    remote_close(r);
}

/* --- the list of threads --- */

static uint64_t add_thread(uint64_t ident)
{
    uint64_t t = fake_new(&fake, fake.l.tstate.size + 8);
    fake_put(&fake, t, fake.l.tstate.interp, fake.interp);
    fake_put(&fake, t, fake.l.tstate.thread_id, ident);
    fake_put(&fake, t, fake.l.tstate.next,
             fake_get(&fake, fake.interp, fake.l.interp.threads_head));
    fake_put(&fake, fake.interp, fake.l.interp.threads_head, t);
    return t;
}

static void test_threads(void **state ATTR_UNUSED)
{
    for (int v = 0; v < VERSIONS; v++) {
        init_version(v);
        build_three();
        struct remote *r = open_fake();
        assert_false(remote_threads_may_have_changed(r));
        uint32_t first = remote_thread(r, 0)->serial;
        uint64_t second = add_thread(0x8000);
        assert_true(remote_threads_may_have_changed(r));
        assert_int_equal(remote_refresh_threads(r), 0);
        assert_int_equal(remote_thread_count(r), 2);
        struct remote_sample s;
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(remote_sample_thread(r, i, &s), 0);
            assert_int_equal(s.depth, remote_thread(r, i)->serial == first ? 3 : 0);
            assert_int_equal(remote_thread(r, i)->tid, 0); /* no such task in our /proc */
        }
        /* gone, and another one in its place: a new serial */
        fake_put(&fake, second, fake.l.tstate.thread_id, 0x9000);
        assert_int_equal(remote_refresh_threads(r), 0);
        assert_int_equal(remote_thread_count(r), 2);
        for (size_t i = 0; i < 2; i++)
            assert_int_not_equal(remote_thread(r, i)->serial, first + 1);
        remote_close(r);
    }
}

static void test_thread_lists_that_lie(void **state ATTR_UNUSED)
{
    init_3_12();
    build_three();
    struct remote *r = open_fake();
    /* a cycle: each thread once */
    fake_put(&fake, fake.tstate, fake.l.tstate.next, fake.tstate);
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread_count(r), 1);
    /* into nowhere: what was found before is good */
    fake_put(&fake, fake.tstate, fake.l.tstate.next, 0x7fff00000000);
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread_count(r), 1);
    /* into what is no address: the memory of a thread that has just ended is free, and the allocator writes into it */
    fake_put(&fake, fake.tstate, fake.l.tstate.next, 0xfeedfacecafebeef);
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread_count(r), 1);
    /* a cycle of interpreters */
    fake_put(&fake, fake.interp, fake.l.interp.next, fake.interp);
    assert_int_equal(remote_refresh_threads(r), 0);
    assert_int_equal(remote_thread_count(r), 1);
    /* nothing is there yet, or any more */
    fake_put(&fake, fake.interp, fake.l.interp.next, 0);
    fake_put(&fake, fake.interp, fake.l.interp.threads_head, 0);
    assert_int_equal(remote_refresh_threads(r), E_NOTREADY);
    fake_put(&fake, FAKE_BASE, fake.l.runtime.interpreters_head, 0);
    assert_int_equal(remote_refresh_threads(r), E_NOTREADY);
    fake_put(&fake, FAKE_BASE, fake.l.runtime.interpreters_head, 0x7fff00000000);
    assert_true(remote_refresh_threads(r) < 0);
    remote_close(r);
}

/* What a 3.13 or later says of itself may be wrong in one word: then it is refused, or the walk
 * goes astray, but never out of bounds (which is for a sanitizer to see). */
static void test_layouts_that_lie(void **state ATTR_UNUSED)
{
    static const uint64_t lies[] = {0, 8, 64, 120, 128, 248, 256, 504, 512, 1016, 2048, 4088};
    for (int v = FIRST_DEBUG; v < VERSIONS; v++) {
        init_version(v);
        build_three();
        struct fake *truth = malloc(sizeof *truth);
        *truth = fake;
        for (uint32_t at = 24; at + 8 <= 900; at += 8) {
            for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
                fake = *truth;
                fake_put(&fake, FAKE_BASE, at, lies[i]);
                struct remote *r = fake_open(&fake);
                struct remote_sample s;
                char name[32];
                if (pylayout_from_debug_offsets(fake.memory, fake.used, &r->layout) == 0 &&
                    remote_refresh_threads(r) == 0) {
                    remote_thread_name(r, 0, name, sizeof name);
                    remote_sample_thread(r, 0, &s);
                }
                remote_close(r);
            }
        }
        free(truth);
    }
}

/* --- seeds --- */

static int write_seeds(const char *folder)
{
    for (int v = 0; v < VERSIONS; v++) {
        if (v == 1 || v == 3) /* little different from their neighbours */
            continue;
        init_version(v);
        build_three();
        add_thread(0x8000);
        char path[4096];
        snprintf(path, sizeof path, "%s/3.%d", folder, 8 + v);
        FILE *file = fopen(path, "wb");
        if (!file)
            return 1;
        const uint8_t head[4] = {(uint8_t)v, 1, 0, 0};
        fwrite(head, 1, sizeof head, file);
        fwrite(fake.memory, 1, fake.used, file);
        if (fclose(file) != 0)
            return 1;
    }
    return 0;
}

int main(void)
{
    const char *folder = getenv("PYROMETER_WRITE_SEEDS");
    if (folder)
        return write_seeds(folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_version),
        cmocka_unit_test(test_gil),
        cmocka_unit_test(test_gil_comes_later),
        cmocka_unit_test(test_another_in_its_place),
        cmocka_unit_test(test_chunks_and_strays),
        cmocka_unit_test(test_flutter_3_8),
        cmocka_unit_test(test_flutter_3_12),
        cmocka_unit_test(test_flutter_3_13),
        cmocka_unit_test(test_always_moving),
        cmocka_unit_test(test_plan_forgets_without_belief),
        cmocka_unit_test(test_known_does_not_stand_for_unknown),
        cmocka_unit_test(test_returning),
        cmocka_unit_test(test_called_again),
        cmocka_unit_test(test_frames_tell),
        cmocka_unit_test(test_litter),
        cmocka_unit_test(test_next_chunk),
        cmocka_unit_test(test_yielded),
        cmocka_unit_test(test_code_replaced),
        cmocka_unit_test(test_code_replaced_by_its_like),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_neighbouring_pages),
        cmocka_unit_test(test_names_and_tables_that_lie),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_thread_lists_that_lie),
        cmocka_unit_test(test_layouts_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
