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

struct child {
    pid_t pid; /* 0: it has been waited for */
    struct orders *orders;
    struct threadstate os;
};

static void end(struct child *c)
{
    if (c->pid) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    c->pid = 0;
}

static int start(void **state)
{
    static struct child c;
    struct orders *o =
        mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (o == MAP_FAILED)
        return -1;
    o->told = SPIN;
    signal(SIGUSR1, wake);
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0)
        obey(o);
    while (o->done != SPIN)
        usleep(100);
    c = (struct child){.pid = pid, .orders = o};
    threadstate_open(&c.os, pid, (uint32_t)pid);
    *state = &c;
    return 0;
}

static int stop(void **state)
{
    struct child *c = *state;
    end(c);
    threadstate_close(&c->os);
    munmap(c->orders, sizeof *c->orders);
    return 0;
}

static void tell(struct child *c, enum deed deed)
{
    c->orders->told = deed;
    if (deed == SPIN)
        kill(c->pid, SIGUSR1);
    while (c->orders->done != (int)deed ||
           (threadstate_read(&c->os, 0, 0) == RECORD_ON_CPU) != (deed == SPIN))
        usleep(100);
}

static void test_running_is_not_sleeping(void **state)
{
    struct child *c = *state;
    tell(c, SLEEP);
    assert_false(threadstate_slept(&c->os)); /* nothing to compare with yet */
    assert_true(threadstate_slept(&c->os));
    assert_true(threadstate_slept(&c->os));
    tell(c, SPIN);
    assert_false(threadstate_slept(&c->os));
}

/* It had a CPU when it was asked, and left it since: nobody put it on one meanwhile, and yet it moved. */
static void test_gone_to_sleep_since(void **state)
{
    struct child *c = *state;
    for (int i = 0; i < 50; i++) {
        tell(c, SPIN);
        threadstate_slept(&c->os);
        tell(c, SLEEP);
        assert_false(threadstate_slept(&c->os));
        assert_true(threadstate_slept(&c->os));
    }
}

static void test_gone_for_ever(void **state)
{
    struct child *c = *state;
    tell(c, SLEEP);
    threadstate_slept(&c->os);
    assert_int_equal(threadstate_read(&c->os, 0, 0), 0);
    assert_false(c->os.ended);
    end(c);
    assert_false(threadstate_slept(&c->os));
    threadstate_read(&c->os, 0, 0);
    assert_true(c->os.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_running_is_not_sleeping, start, stop),
        cmocka_unit_test_setup_teardown(test_gone_to_sleep_since, start, stop),
        cmocka_unit_test_setup_teardown(test_gone_for_ever, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
