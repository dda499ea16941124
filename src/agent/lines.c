#include "agent/lines.h"

#include "agent/select.h"

static uint32_t judge(const struct code_facts *facts)
{
    if (select_leaves_out(facts))
        return RING_CODE_LEFT_OUT;
    if (facts->flags & RING_CODE_C)
        return 0;
    /* a generator goes on in the line where it stopped: which one it is must be known */
    uint32_t flags = facts->flags & RING_CODE_GENERATOR ? RING_CODE_COROUTINE : 0;
    if (!select_wants(facts))
        return flags | (lines_are_alone() ? (uint32_t)RING_CODE_LEFT_OUT : (uint32_t)CODE_NO_LINES);
    return flags | (py.has_monitoring ? lines_arm(facts) : 0);
}

void lines_init(void)
{
    codes_judge = judge;
}
