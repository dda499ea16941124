/* Which threads are taken to have slept since they were last asked: a real one, that runs or sleeps as it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* wants the headers above */

#include "format/record.h"
#include "record/threadstate.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child does: as it is told, and it says when it began. */
enum deed { SPIN = 1, SLEEP };
struct orders {
    _Atomic int told, done;
};

static void obey(struct orders *o)
{
    for (;;) {
        int deed = o->told;
        o->done = deed;
        if (deed == SLEEP)
            pause();
    }
}

static void wake(int number)
{
    (void)number;
}

static pid_t start(struct orders **ret)
{
    struct orders *o =
        mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(o != MAP_FAILED);
    o->told = SPIN;
    signal(SIGUSR1, wake);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not get to stop() */
        obey(o);
    }
    while (o->done != SPIN)
        usleep(100);
    *ret = o;
    return pid;
}

static void tell(pid_t pid, struct orders *o, struct threadstate *s, enum deed deed)
{
    o->told = deed;
    if (deed == SPIN)
        kill(pid, SIGUSR1);
    while (o->done != (int)deed || (threadstate_read(s, 0, 0) == RECORD_ON_CPU) != (deed == SPIN))
        usleep(100);
}

static void stop(pid_t pid, struct orders *o, struct threadstate *s)
{
    threadstate_close(s);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    munmap(o, sizeof *o);
}

static void test_running_is_not_sleeping(void **state)
{
    (void)state;
    struct orders *o;
    struct threadstate s;
    pid_t pid = start(&o);
    threadstate_open(&s, pid, (uint32_t)pid);
    tell(pid, o, &s, SLEEP);
    assert_false(threadstate_slept(&s)); /* nothing to compare with yet */
    assert_true(threadstate_slept(&s));
    assert_true(threadstate_slept(&s));
    tell(pid, o, &s, SPIN);
    assert_false(threadstate_slept(&s));
    tell(pid, o, &s, SLEEP);
    stop(pid, o, &s);
}

/* It had a CPU when it was asked, and left it since: nobody put it on one meanwhile, and yet it moved. */
static void test_gone_to_sleep_since(void **state)
{
    (void)state;
    struct orders *o;
    struct threadstate s;
    pid_t pid = start(&o);
    threadstate_open(&s, pid, (uint32_t)pid);
    for (int i = 0; i < 50; i++) {
        tell(pid, o, &s, SPIN);
        threadstate_slept(&s);
        tell(pid, o, &s, SLEEP);
        assert_false(threadstate_slept(&s));
        assert_true(threadstate_slept(&s));
    }
    stop(pid, o, &s);
}

static void test_gone_for_ever(void **state)
{
    (void)state;
    struct orders *o;
    struct threadstate s;
    pid_t pid = start(&o);
    threadstate_open(&s, pid, (uint32_t)pid);
    tell(pid, o, &s, SLEEP);
    threadstate_slept(&s);
    assert_int_equal(threadstate_read(&s, 0, 0), 0);
    assert_false(s.ended);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(threadstate_slept(&s));
    threadstate_read(&s, 0, 0);
    assert_true(s.ended);
    stop(pid, o, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running_is_not_sleeping),
        cmocka_unit_test(test_gone_to_sleep_since),
        cmocka_unit_test(test_gone_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
