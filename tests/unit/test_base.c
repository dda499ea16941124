/* The ground floor: growing bytes and their maximum, varints, the hash index, the typed array,
 * whole files. */
#include "base/buf.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/io.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

/* --- buf --- */

static void test_buf_grows(void **state ATTR_UNUSED)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 100000; i++)
        buf_put_u8(&b, (uint8_t)i);
    assert_int_equal(buf_error(&b), 0);
    assert_int_equal(b.len, 100000);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(b.data[i], (uint8_t)i);
    buf_release(&b);
    assert_null(b.data);
    assert_int_equal(b.max, 1 << 20);
}

/* The maximum is exact, whichever call reaches it and however small it is. */
static void test_buf_maximum(void **state ATTR_UNUSED)
{
    static const size_t maxima[] = {0, 1, 9, 10, 255, 256, 257, 1000, 4096};
    for (size_t m = 0; m < ARRAY_LEN(maxima); m++) {
        struct buf b;
        buf_init(&b, maxima[m]);
        for (size_t i = 0; i < maxima[m] + 300; i++)
            buf_put_u8(&b, 'x');
        assert_int_equal(b.len, maxima[m]);
        assert_int_equal(buf_error(&b), E_LIMIT);
        assert_true(b.cap <= b.max);
        buf_release(&b);

        buf_init(&b, maxima[m]);
        for (size_t i = 0; i < maxima[m] + 300; i++)
            buf_append(&b, "y", 1);
        assert_int_equal(b.len, maxima[m]);
        buf_release(&b);

        buf_init(&b, maxima[m]);
        for (size_t i = 0; i < maxima[m] + 300; i++)
            buf_put_varint(&b, UINT64_MAX);
        assert_true(b.len <= maxima[m]);
        assert_int_equal(b.len % VARINT_MAX_BYTES, 0);
        assert_int_equal(buf_error(&b), E_LIMIT);
        buf_release(&b);
    }
}

/* After one failure every later append does nothing, also one for which there would be room. */
static void test_buf_error_is_sticky(void **state ATTR_UNUSED)
{
    struct buf b;
    char big[200] = {0};
    buf_init(&b, 100);
    buf_puts(&b, "kept");
    buf_append(&b, big, sizeof big);
    assert_int_equal(buf_error(&b), E_LIMIT);
    buf_puts(&b, "a");
    buf_put_u8(&b, 'b');
    buf_put_varint(&b, 1);
    buf_put_svarint(&b, -1);
    buf_printf(&b, "%d", 1);
    assert_false(buf_reserve(&b, 1));
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "kept", 4);
    assert_string_equal(buf_cstr(&b), "");
    assert_null(buf_detach(&b));

    buf_puts(&b, "again"); /* detaching left a fresh one */
    assert_int_equal(buf_error(&b), 0);
    buf_append(&b, big, sizeof big);
    buf_clear(&b); /* and so does clearing */
    buf_printf(&b, "%s-%d", "fresh", 7);
    assert_string_equal(buf_cstr(&b), "fresh-7");
    assert_int_equal(b.len, 7);
    buf_release(&b);
}

static void test_buf_detach(void **state ATTR_UNUSED)
{
    struct buf b;
    buf_init(&b, 64);
    buf_puts(&b, "mine");
    char *text = buf_detach(&b);
    assert_string_equal(text, "mine");
    assert_null(b.data);
    free(text);
    text = buf_detach(&b);
    assert_string_equal(text, "");
    free(text);
}

static uint64_t get_varint(const uint8_t *p, size_t len)
{
    uint64_t v = 0;
    for (size_t i = 0; i < len; i++)
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
    return v;
}

static void test_varints(void **state ATTR_UNUSED)
{
    struct buf b;
    buf_init(&b, 64);
    for (unsigned bits = 0; bits <= 64; bits++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t v = (bits < 64 ? 1ull << bits : 0) + (uint64_t)(int64_t)delta;
            buf_clear(&b);
            buf_put_varint(&b, v);
            assert_true(b.len >= 1 && b.len <= VARINT_MAX_BYTES);
            assert_true(get_varint(b.data, b.len) == v);
            for (size_t i = 0; i < b.len; i++) /* all but the last go on */
                assert_int_equal(b.data[i] >> 7, i + 1 < b.len);
            assert_true(b.len == 1 || b.data[b.len - 1] != 0); /* the shortest form */

            buf_clear(&b);
            buf_put_svarint(&b, (int64_t)v);
            uint64_t z = get_varint(b.data, b.len);
            assert_true((int64_t)(z >> 1 ^ -(z & 1)) == (int64_t)v);
        }
    }
    buf_clear(&b);
    buf_put_svarint(&b, -64); /* small negative numbers stay small */
    assert_int_equal(b.len, 1);
    buf_release(&b);
}

/* --- idxmap --- */

static uint32_t find(const struct idxmap *m, uint32_t hash, const uint64_t *keys, uint64_t key)
{
    uint32_t at;
    IDXMAP_FIND(m, hash, i, keys[i] == key, at);
    return at;
}

static void test_idxmap_growth(void **state ATTR_UNUSED)
{
    enum { MANY = 20000 };
    struct idxmap m = {0};
    uint64_t *keys = calloc(MANY, sizeof *keys);
    assert_non_null(keys);
    assert_int_equal(find(&m, 1, keys, 1), IDXMAP_NONE);
    for (uint32_t i = 0; i < MANY; i++) {
        keys[i] = (uint64_t)i * 977;
        assert_int_equal(find(&m, hash_u64(keys[i]), keys, keys[i]), IDXMAP_NONE);
        assert_int_equal(idxmap_insert(&m, hash_u64(keys[i]), i), 0);
        assert_true((uint64_t)m.used * 2 <= (uint64_t)m.mask + 1); /* so that a probe always ends */
    }
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(find(&m, hash_u64(keys[i]), keys, keys[i]), i);
    assert_int_equal(find(&m, hash_u64(5), keys, 5), IDXMAP_NONE);

    idxmap_clear(&m);
    assert_int_equal(find(&m, hash_u64(keys[3]), keys, keys[3]), IDXMAP_NONE);
    assert_int_equal(idxmap_insert(&m, hash_u64(keys[3]), 3), 0);
    assert_int_equal(find(&m, hash_u64(keys[3]), keys, keys[3]), 3);
    idxmap_release(&m);
    free(keys);
}

/* The worst case: everything has one hash. Still right, only slower. */
static void test_idxmap_collisions(void **state ATTR_UNUSED)
{
    enum { MANY = 1000 };
    struct idxmap m = {0};
    uint64_t keys[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        keys[i] = i;
        assert_int_equal(idxmap_insert(&m, UINT32_MAX, i), 0);
    }
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(find(&m, UINT32_MAX, keys, i), i);
    assert_int_equal(find(&m, UINT32_MAX, keys, MANY), IDXMAP_NONE);
    idxmap_release(&m);
}

static void test_hash_bytes(void **state ATTR_UNUSED)
{
    assert_true(hash_bytes("abc", 3) == hash_bytes("abc", 3));
    assert_true(hash_bytes("abc", 3) != hash_bytes("abd", 3));
    assert_true(hash_bytes("abc", 3) != hash_bytes("abc", 2));
    hash_bytes(NULL, 0);
}

/* --- vec --- */

static void test_vec(void **state ATTR_UNUSED)
{
    struct pair {
        uint64_t a, b;
    };
    VEC(struct pair) v = {0};
    for (uint64_t i = 0; i < 5000; i++) {
        struct pair *p = vec_push(&v);
        assert_non_null(p);
        assert_true(p->a == 0 && p->b == 0); /* zeroed, also in memory used before */
        *p = (struct pair){i, ~i};
    }
    assert_int_equal(v.len, 5000);
    for (uint64_t i = 0; i < v.len; i++)
        assert_true(v.data[i].a == i && v.data[i].b == ~i);
    v.len = 10;
    assert_true(vec_push(&v)->a == 0);
    assert_true(vec_reserve(&v, 100000));
    assert_true(v.cap >= 100000);
    assert_int_equal(v.len, 11);
    vec_release(&v);
    assert_null(v.data);
    assert_int_equal(v.len + v.cap, 0);
}

/* --- io --- */

static void test_write_and_read(void **state ATTR_UNUSED)
{
    char path[] = "/tmp/pyrometer-io-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static char content[200000];
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * 31 % 251);
    assert_int_equal(io_write_all(fd, content, sizeof content), 0);
    close(fd);

    struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(io_read_file(path, &b), 0);
    assert_int_equal(b.len, sizeof content);
    assert_memory_equal(b.data, content, sizeof content);
    buf_release(&b);

    buf_init(&b, sizeof content - 1); /* one byte too few */
    assert_int_equal(io_read_file(path, &b), E_LIMIT);
    assert_true(b.len <= b.max);
    buf_release(&b);

    char few[16];
    assert_int_equal(io_read_text(path, few, sizeof few), 15);
    assert_int_equal(few[15], 0);
    assert_memory_equal(few, content, 15);
    unlink(path);
    assert_int_equal(io_read_file(path, &b), E_NOENT);
    assert_int_equal(io_read_text(path, few, sizeof few), E_NOENT);
    assert_int_equal(io_read_file("/", &b), E_ISDIR);
    buf_release(&b);
}

static void ignore_signal(int number)
{
    (void)number;
}

/* A pipe that is read slowly by another process, while signals arrive: short writes and EINTR. */
static void test_write_all_through_interruptions(void **state ATTR_UNUSED)
{
    enum { BYTES = 1 << 20 };
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct sigaction act = {.sa_handler = ignore_signal}, old; /* without SA_RESTART */
    sigaction(SIGUSR1, &act, &old);
    pid_t parent = getpid(), child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static uint8_t got[BYTES];
        size_t have = 0;
        close(fds[1]);
        for (ssize_t n; have < BYTES && (n = read(fds[0], got + have, 10007)) > 0;) {
            have += (size_t)n;
            kill(parent, SIGUSR1);
        }
        for (size_t i = 0; i < have; i++)
            if (got[i] != (uint8_t)(i * 7))
                _exit(1);
        _exit(have == BYTES ? 0 : 2);
    }
    close(fds[0]);
    uint8_t *data = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i * 7);
    assert_int_equal(io_write_all(fds[1], data, BYTES), 0);
    close(fds[1]);
    free(data);
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    assert_int_equal(status, 0);
    sigaction(SIGUSR1, &old, NULL);
}

static void test_write_errors(void **state ATTR_UNUSED)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full >= 0) {
        assert_int_equal(io_write_all(full, "x", 1), E_NOSPACE);
        close(full);
    }
    assert_true(io_write_all(-1, "x", 1) < 0);
    assert_int_equal(io_write_all(-1, "", 0), 0);
}

/* --- err, utf8 --- */

static void test_errors(void **state ATTR_UNUSED)
{
    assert_int_equal(err_from_errno(0), 0);
    assert_int_equal(err_from_errno(ENOSPC), E_NOSPACE);
    assert_int_equal(err_from_errno(EXDEV), E_SYSTEM);
    assert_string_equal(err_name(E_NOSPACE), "NOSPACE");
    assert_string_equal(err_name(0), "OK");
    assert_non_null(err_text(12345));
    for (int code = -1; code > -ERR_COUNT_; code--)
        assert_string_not_equal(err_text(code), "unknown error");
}

static void test_utf8(void **state ATTR_UNUSED)
{
    static const struct {
        const char *text;
        size_t len, takes;
        uint32_t c;
    } cases[] = {
        {"a", 1, 1, 'a'},
        {"\xc3\xa9", 2, 2, 0xe9},
        {"\xe2\x82\xac", 3, 3, 0x20ac},
        {"\xf0\x9f\x98\x80", 4, 4, 0x1f600},
        {"\xc3", 1, 0, 0},             /* cut off */
        {"\xe2\x82", 2, 0, 0},         /* cut off */
        {"\xc0\x80", 2, 0, 0},         /* overlong */
        {"\xe0\x80\x80", 3, 0, 0},     /* overlong */
        {"\xed\xa0\x80", 3, 0, 0},     /* a surrogate */
        {"\xf4\x90\x80\x80", 4, 0, 0}, /* past the last */
        {"\xc3\x28", 2, 0, 0},         /* no continuation */
        {"\x80", 1, 0, 0},             /* nothing but continuation */
        {"\xff\xff\xff\xff", 4, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t c = 0;
        assert_int_equal(utf8_decode(cases[i].text, cases[i].len, &c), cases[i].takes);
        assert_int_equal(c, cases[i].c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_grows),
        cmocka_unit_test(test_buf_maximum),
        cmocka_unit_test(test_buf_error_is_sticky),
        cmocka_unit_test(test_buf_detach),
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_idxmap_growth),
        cmocka_unit_test(test_idxmap_collisions),
        cmocka_unit_test(test_hash_bytes),
        cmocka_unit_test(test_vec),
        cmocka_unit_test(test_write_and_read),
        cmocka_unit_test(test_write_all_through_interruptions),
        cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
