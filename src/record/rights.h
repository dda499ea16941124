/* Why the kernel forbids reading a process, in one line with the remedy.
 *
 * The kernel only says EPERM. Which rule it was follows from facts in /proc: gathering them and
 * deciding are apart, so that the decision can be tested without the machine that has the rule. */
#ifndef PYROMETER_RECORD_RIGHTS_H
#define PYROMETER_RECORD_RIGHTS_H

#include "base/attr.h"

#include <stdbool.h>
#include <sys/types.h>

enum { RIGHTS_USER_MAX = 64, RIGHTS_NO_YAMA = -1 };

/* Real, effective and saved id, as /proc/PID/status has them. */
struct rights_ids {
    uint32_t real, effective, saved;
};

/* What decides. Own: of this process. Target: of the one to be read. */
struct rights_facts {
    struct rights_ids own_uid, own_gid;
    struct rights_ids target_uid, target_gid;
    char target_user[RIGHTS_USER_MAX]; /* name of the target's user, or "" */
    uint64_t own_effective;            /* capabilities, bit by number */
    uint64_t own_permitted, target_permitted;
    int yama;            /* kernel.yama.ptrace_scope, or RIGHTS_NO_YAMA */
    bool own_child;      /* the target descends from this process */
    bool not_dumpable;   /* the target protects its memory (prctl, setuid program) */
    bool in_container;   /* this process runs in one */
    bool seccomp_filter; /* system calls of this process are filtered */
    bool target_nested;  /* the target lives in a pid namespace below ours: in a container */
};

enum rights_rule {
    RIGHTS_OTHER_USER,
    RIGHTS_OTHER_GROUP,
    RIGHTS_NO_CAPABILITY, /* root, but without CAP_SYS_PTRACE */
    RIGHTS_NOT_DUMPABLE,
    RIGHTS_MORE_CAPABLE, /* the target may do what we may not */
    RIGHTS_YAMA,
    RIGHTS_FILTER, /* seccomp, as containers have it */
    RIGHTS_OTHER_NAMESPACE,
    RIGHTS_UNKNOWN, /* another security module, most likely */
};

/* The rule that forbids it, by the order in which the kernel asks. Pure. */
enum rights_rule rights_decide(const struct rights_facts *f);

/* The line for it: what forbids it and what to do. Pure. */
void rights_describe(const struct rights_facts *f, enum rights_rule rule, char *dst, size_t size);

/* Gathers the facts about `pid`; E_NOPROC if it is gone. */
int rights_gather(pid_t pid, struct rights_facts *ret);

/* All of it: completes the sentence "cannot read process PID: …". */
void rights_explain(pid_t pid, char *dst, size_t size);

/* The whole sentence, without a full stop, for a process that was refused with E_PERM, E_VERSION or E_REPLACED. */
void rights_refusal(pid_t pid, int code, char *dst, size_t size);

#endif
