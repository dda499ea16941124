/* Which rule forbids reading a process: one case for each, from facts, without the machine that has
 * the rule; and the words of each line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* wants the headers above */

#include "base/err.h"
#include "record/rights.h"

#define ALL_CAPS   0x1ffffffffffull
#define PTRACE_CAP (1ull << 19)
#define IDS(id)                                                                                    \
    {                                                                                              \
        (id), (id), (id)                                                                           \
    }
#define NO_PTRACE(c) ((c) & ~PTRACE_CAP)

/* A user's own process, which nothing forbids to read. */
static struct rights_facts harmless(void)
{
    return (struct rights_facts){
        .own_uid = IDS(1000),
        .own_gid = IDS(1000),
        .target_uid = IDS(1000),
        .target_gid = IDS(1000),
        .target_user = "ada",
        .yama = RIGHTS_NO_YAMA,
    };
}

static struct rights_facts root(void)
{
    struct rights_facts f = harmless();
    f.own_uid = f.own_gid = (struct rights_ids)IDS(0);
    f.own_effective = f.own_permitted = ALL_CAPS;
    return f;
}

static void expect(const struct rights_facts *f, enum rights_rule rule, const char *words)
{
    char line[512];
    assert_int_equal(rights_decide(f), rule);
    rights_describe(f, rule, line, sizeof line);
    assert_null(strchr(line, '\n'));
    if (!strstr(line, words))
        fail_msg("'%s' is not in: %s", words, line);
}

static void test_other_user(void **state)
{
    (void)state;
    struct rights_facts f = harmless();
    f.target_uid = (struct rights_ids)IDS(1001);
    expect(&f, RIGHTS_OTHER_USER, "it belongs to user ada");
    expect(&f, RIGHTS_OTHER_USER, "sudo");
    f.target_user[0] = 0;
    expect(&f, RIGHTS_OTHER_USER, "user 1001");

    /* a setuid program: only some of its ids are another's */
    f = harmless();
    f.target_uid.effective = 0;
    expect(&f, RIGHTS_OTHER_USER, "sudo");
    f = harmless();
    f.target_uid.saved = 0;
    expect(&f, RIGHTS_OTHER_USER, "sudo");
}

static void test_other_group(void **state)
{
    (void)state;
    struct rights_facts f = harmless();
    f.target_gid.effective = 5;
    expect(&f, RIGHTS_OTHER_GROUP, "group");
}

static void test_not_dumpable(void **state)
{
    (void)state;
    struct rights_facts f = harmless();
    f.not_dumpable = true;
    expect(&f, RIGHTS_NOT_DUMPABLE, "dumpable");
}

static void test_root_without_capability(void **state)
{
    (void)state;
    struct rights_facts f = root();
    f.own_effective = f.own_permitted = NO_PTRACE(ALL_CAPS);
    expect(&f, RIGHTS_NO_CAPABILITY, "CAP_SYS_PTRACE");
    f.in_container = true;
    expect(&f, RIGHTS_NO_CAPABILITY, "--cap-add SYS_PTRACE");

    /* the same user, but the target has what we have not */
    f.target_uid = f.target_gid = (struct rights_ids)IDS(0);
    f.target_permitted = ALL_CAPS;
    expect(&f, RIGHTS_NO_CAPABILITY, "--cap-add SYS_PTRACE");
}

static void test_more_capable_target(void **state)
{
    (void)state;
    struct rights_facts f = harmless();
    f.target_permitted = 1ull << 10;
    expect(&f, RIGHTS_MORE_CAPABLE, "capabilities");
    f.own_permitted = ALL_CAPS;
    f.own_effective = 0;
    assert_int_equal(rights_decide(&f), RIGHTS_UNKNOWN);
}

static void test_yama(void **state)
{
    (void)state;
    struct rights_facts f = harmless();
    f.yama = 1;
    expect(&f, RIGHTS_YAMA, "kernel.yama.ptrace_scope=1");
    expect(&f, RIGHTS_YAMA, "sysctl kernel.yama.ptrace_scope=0");
    expect(&f, RIGHTS_YAMA, "pyrometer run");
    f.in_container = true;
    expect(&f, RIGHTS_YAMA, "--cap-add SYS_PTRACE");
    f.in_container = false;
    f.own_child = true; /* then 1 is no hindrance */
    assert_int_equal(rights_decide(&f), RIGHTS_UNKNOWN);
    f.yama = 2;
    expect(&f, RIGHTS_YAMA, "ptrace_scope=2");
    f.yama = 3;
    expect(&f, RIGHTS_YAMA, "ptrace_scope=3");

    f = root(); /* root passes all of them but the last */
    f.yama = 2;
    assert_int_equal(rights_decide(&f), RIGHTS_UNKNOWN);
    f.yama = 3;
    expect(&f, RIGHTS_YAMA, "boot");

    f = harmless(); /* the user comes first: Yama's remedy would not help */
    f.yama = 1;
    f.target_uid = (struct rights_ids)IDS(1001);
    assert_int_equal(rights_decide(&f), RIGHTS_OTHER_USER);
}

static void test_container(void **state)
{
    (void)state;
    struct rights_facts f = root();
    f.seccomp_filter = true;
    expect(&f, RIGHTS_FILTER, "seccomp");
    expect(&f, RIGHTS_FILTER, "container");
    f.in_container = true;
    expect(&f, RIGHTS_FILTER, "--cap-add SYS_PTRACE");
    f = harmless();
    f.seccomp_filter = true;
    expect(&f, RIGHTS_FILTER, "seccomp");
    f = root();
    f.target_nested = true;
    expect(&f, RIGHTS_OTHER_NAMESPACE, "container");
}

static void test_unknown(void **state)
{
    (void)state;
    struct rights_facts f = root();
    expect(&f, RIGHTS_UNKNOWN, "security module");
    f.in_container = true; /* with the capability, which is no remedy then */
    expect(&f, RIGHTS_UNKNOWN, "--security-opt");
    f = harmless();
    f.in_container = true;
    expect(&f, RIGHTS_UNKNOWN, "--cap-add SYS_PTRACE");
}

static void test_gather(void **state)
{
    (void)state;
    struct rights_facts f;
    assert_int_equal(rights_gather(getpid(), &f), 0);
    assert_int_equal(f.own_uid.real, getuid());
    assert_int_equal(f.own_uid.effective, geteuid());
    assert_int_equal(f.own_gid.real, getgid());
    assert_memory_equal(&f.target_uid, &f.own_uid, sizeof f.own_uid);
    assert_memory_equal(&f.target_gid, &f.own_gid, sizeof f.own_gid);
    assert_true(f.target_permitted == f.own_permitted);
    assert_true(f.own_child);
    assert_in_range(f.yama + 1, 0, 4);

    struct rights_facts kept = f;
    enum { NO_SUCH_PID = 0x7ffffff0 };
    assert_int_equal(rights_gather(NO_SUCH_PID, &f), E_NOPROC);
    assert_memory_equal(&f, &kept, sizeof f);
}

/* However little room there is, it ends with a NUL inside it. */
static void test_short_room(void **state)
{
    (void)state;
    for (int rule = RIGHTS_OTHER_USER; rule <= RIGHTS_UNKNOWN; rule++) {
        char line[8];
        struct rights_facts f = harmless();
        memset(line, 'x', sizeof line);
        rights_describe(&f, (enum rights_rule)rule, line, 5);
        assert_int_equal(strlen(line), 4);
        assert_int_equal(line[5], 'x');
    }
    char line[512];
    rights_explain(getpid(), line, sizeof line);
    assert_true(strlen(line) > 10);
}

static void test_refusal(void **state)
{
    (void)state;
    char line[640];
    rights_refusal(4711, E_VERSION, line, sizeof line);
    assert_string_equal(line, "process 4711 runs a CPython that is not supported: 3.8 to 3.15 with "
                              "a GIL are");
    rights_refusal(getpid(), E_PERM, line, sizeof line);
    assert_memory_equal(line, "no right to read process ", 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_user),
        cmocka_unit_test(test_other_group),
        cmocka_unit_test(test_not_dumpable),
        cmocka_unit_test(test_root_without_capability),
        cmocka_unit_test(test_more_capable_target),
        cmocka_unit_test(test_yama),
        cmocka_unit_test(test_container),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_short_room),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
