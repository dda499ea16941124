/* The kernel's rules for reading another process (ptrace(2), "Ptrace access mode checking"), asked
 * in its order: user and group, dumpable, capabilities, Yama; before all of them a seccomp filter.
 * CAP_SYS_PTRACE lifts all but the filter and Yama's strictest setting. */
#include "record/rights.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CAPABILITY_PTRACE = 19, /* CAP_SYS_PTRACE */
    STATUS_MAX = 64 << 10,  /* bytes of /proc/PID/status */
    ANCESTORS_MAX = 64,
    YAMA_CHILDREN = 1,
    YAMA_ADMIN = 2,
    YAMA_NOBODY = 3,
    SECCOMP_MODE_FILTER_ = 2,
};

/* ---- deciding ---- */

static bool may_trace(const struct rights_facts *f)
{
    return f->own_effective >> CAPABILITY_PTRACE & 1;
}

static bool all_are(const struct rights_ids *ids, uint32_t id)
{
    return ids->real == id && ids->effective == id && ids->saved == id;
}

enum rights_rule rights_decide(const struct rights_facts *f)
{
    if (f->yama == YAMA_NOBODY)
        return RIGHTS_YAMA;
    if (may_trace(f)) {
        if (f->seccomp_filter)
            return RIGHTS_FILTER;
        return f->target_nested ? RIGHTS_OTHER_NAMESPACE : RIGHTS_UNKNOWN;
    }
    if (!all_are(&f->target_uid, f->own_uid.real))
        return f->own_uid.real == 0 ? RIGHTS_NO_CAPABILITY : RIGHTS_OTHER_USER;
    if (!all_are(&f->target_gid, f->own_gid.real))
        return RIGHTS_OTHER_GROUP;
    if (f->not_dumpable)
        return RIGHTS_NOT_DUMPABLE;
    if (f->target_permitted & ~f->own_permitted)
        return f->own_uid.real == 0 ? RIGHTS_NO_CAPABILITY : RIGHTS_MORE_CAPABLE;
    if (f->yama == YAMA_ADMIN || (f->yama == YAMA_CHILDREN && !f->own_child))
        return RIGHTS_YAMA;
    if (f->seccomp_filter)
        return RIGHTS_FILTER;
    return f->target_nested ? RIGHTS_OTHER_NAMESPACE : RIGHTS_UNKNOWN;
}

#define CAP_ADD "start the container with --cap-add SYS_PTRACE"

static void describe_yama(const struct rights_facts *f, char *dst, size_t size)
{
    if (f->yama == YAMA_NOBODY)
        snprintf(dst, size,
                 "Yama forbids it to everybody (kernel.yama.ptrace_scope=3), until the next boot "
                 "without that setting");
    else if (f->in_container)
        snprintf(dst, size,
                 "Yama forbids it (kernel.yama.ptrace_scope=%d): " CAP_ADD
                 ", or start the program by 'pyrometer run'",
                 f->yama);
    else if (f->yama == YAMA_ADMIN)
        snprintf(dst, size,
                 "Yama leaves it to root (kernel.yama.ptrace_scope=2): use sudo, or 'sudo sysctl "
                 "kernel.yama.ptrace_scope=0'");
    else
        snprintf(dst, size,
                 "Yama leaves it to parents of a process (kernel.yama.ptrace_scope=%d): use sudo, "
                 "start the program by 'pyrometer run', or 'sudo sysctl "
                 "kernel.yama.ptrace_scope=0'",
                 f->yama);
}

static void describe_user(const struct rights_facts *f, char *dst, size_t size)
{
    char id[16];
    snprintf(id, sizeof id, "%u", f->target_uid.effective);
    snprintf(dst, size, "it belongs to user %s: run as that user, or as root (sudo)",
             f->target_user[0] ? f->target_user : id);
}

void rights_describe(const struct rights_facts *f, enum rights_rule rule, char *dst, size_t size)
{
    const char *text = "";
    switch (rule) {
    case RIGHTS_OTHER_USER:
        describe_user(f, dst, size);
        return;
    case RIGHTS_YAMA:
        describe_yama(f, dst, size);
        return;
    case RIGHTS_OTHER_GROUP:
        text = "it runs with another group than you: use sudo";
        break;
    case RIGHTS_NO_CAPABILITY:
        text = f->in_container ? "the capability CAP_SYS_PTRACE is missing here: " CAP_ADD
                               : "this root has no CAP_SYS_PTRACE: run as the full root";
        break;
    case RIGHTS_NOT_DUMPABLE:
        text = "it protects its memory (not dumpable: by prctl, or a program that is setuid or may "
               "not be "
               "read): use sudo";
        break;
    case RIGHTS_MORE_CAPABLE:
        text = "it has capabilities that you have not: use sudo";
        break;
    case RIGHTS_FILTER:
        text = f->in_container
                   ? "a seccomp filter of this container forbids it: " CAP_ADD
                   : "a seccomp filter forbids it, as in a container or a sandbox: start that one "
                     "with --cap-add SYS_PTRACE, or run outside of it";
        break;
    case RIGHTS_OTHER_NAMESPACE:
        text = "it runs in a container whose namespace is not yours: run as root of this machine "
               "(sudo), or inside that container with --cap-add SYS_PTRACE";
        break;
    case RIGHTS_UNKNOWN:
        if (!f->in_container)
            text = "a security module (SELinux, AppArmor) forbids it: ask who looks after this "
                   "machine";
        else if (may_trace(f)) /* the capability is there: it is not that */
            text = "a security module forbids it to this container: start it with --security-opt "
                   "apparmor=unconfined (or label=disable, with SELinux)";
        else
            text = "this container does not allow it: start it with --cap-add SYS_PTRACE";
        break;
    }
    snprintf(dst, size, "%s", text);
}

/* ---- gathering ---- */

/* The text after "Name:" in a status file; NULL if it has no such line. */
static const char *status_field(const char *status, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, len) && line[len] == ':')
            return line + len + 1;
    }
    return NULL;
}

static struct rights_ids status_ids(const char *status, const char *name)
{
    struct rights_ids ids = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    const char *text = status_field(status, name);
    unsigned real, effective, saved;
    if (text && sscanf(text, "%u %u %u", &real, &effective, &saved) == 3)
        ids = (struct rights_ids){real, effective, saved};
    return ids;
}

static uint64_t status_hex(const char *status, const char *name)
{
    const char *text = status_field(status, name);
    return text ? strtoull(text, NULL, 16) : 0;
}

static long status_number(const char *status, const char *name)
{
    const char *text = status_field(status, name);
    return text ? strtol(text, NULL, 10) : 0;
}

/* More than one number in NSpid: the process has a pid of its own in a namespace below. */
static bool is_nested(const char *status)
{
    const char *text = status_field(status, "NSpid");
    if (!text)
        return false;
    text += strspn(text, " \t");
    text += strcspn(text, " \t\n");
    text += strspn(text, " \t");
    return *text >= '0' && *text <= '9';
}

static int read_status(const char *who, struct buf *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/status", who);
    buf_clear(out);
    return io_read_file(path, out);
}

/* Follows the parents of `pid` upwards. */
static bool descends_from_us(pid_t pid, struct buf *scratch)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        char who[16];
        if (pid == getpid())
            return true;
        snprintf(who, sizeof who, "%d", (int)pid);
        if (read_status(who, scratch) < 0)
            return false;
        pid = (pid_t)status_number(buf_cstr(scratch), "PPid");
    }
    return false;
}

/* The files of a process that is not dumpable belong to root, whoever runs it. */
static bool is_not_dumpable(const char *who, uint32_t effective_uid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%s/maps", who);
    return effective_uid != 0 && lstat(path, &st) == 0 && st.st_uid == 0;
}

static int read_yama(void)
{
    char text[16];
    int n = io_read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
    return n > 0 ? atoi(text) : RIGHTS_NO_YAMA;
}

static void name_user(uint32_t uid, char dst[RIGHTS_USER_MAX])
{
    const struct passwd *entry = getpwuid(uid);
    snprintf(dst, RIGHTS_USER_MAX, "%s", entry && entry->pw_name ? entry->pw_name : "");
}

int rights_gather(pid_t pid, struct rights_facts *ret)
{
    struct rights_facts f = {0};
    struct buf status;
    char who[16];
    buf_init(&status, STATUS_MAX);
    int r = read_status("self", &status);
    if (r == 0) {
        const char *own = buf_cstr(&status);
        f.own_uid = status_ids(own, "Uid");
        f.own_gid = status_ids(own, "Gid");
        f.own_effective = status_hex(own, "CapEff");
        f.own_permitted = status_hex(own, "CapPrm");
        f.seccomp_filter = status_number(own, "Seccomp") == SECCOMP_MODE_FILTER_;
        snprintf(who, sizeof who, "%d", (int)pid);
        r = read_status(who, &status);
    }
    if (r == 0) {
        const char *target = buf_cstr(&status);
        f.target_uid = status_ids(target, "Uid");
        f.target_gid = status_ids(target, "Gid");
        f.target_permitted = status_hex(target, "CapPrm");
        f.target_nested = is_nested(target);
        f.not_dumpable = is_not_dumpable(who, f.target_uid.effective);
        name_user(f.target_uid.effective, f.target_user);
        f.own_child = descends_from_us(pid, &status);
        f.yama = read_yama();
        f.in_container =
            access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
    }
    buf_release(&status);
    if (r < 0)
        return r == E_NOENT ? E_NOPROC : r;
    *ret = f;
    return 0;
}

void rights_explain(pid_t pid, char *dst, size_t size)
{
    struct rights_facts f;
    int r = rights_gather(pid, &f);
    if (r < 0)
        snprintf(dst, size, "%s", err_text(r == E_NOPROC ? r : E_PERM));
    else
        rights_describe(&f, rights_decide(&f), dst, size);
}

void rights_refusal(pid_t pid, int code, char *dst, size_t size)
{
    char reason[512];
    if (code == E_VERSION) {
        snprintf(dst, size,
                 "process %d runs a CPython that is not supported: 3.8 to 3.15 with a GIL are",
                 (int)pid);
        return;
    }
    if (code == E_REPLACED) {
        snprintf(dst, size,
                 "the interpreter of process %d was replaced or removed on the disk since it "
                 "started: restart the process, or read it as root",
                 (int)pid);
        return;
    }
    if (code == E_NOMEM || code == E_FILES) {
        snprintf(dst, size,
                 "process %d could not be sampled: pyrometer itself has %s: raise ulimit -%c",
                 (int)pid, code == E_NOMEM ? "no memory left" : "too many files open",
                 code == E_NOMEM ? 'v' : 'n');
        return;
    }
    rights_explain(pid, reason, sizeof reason);
    snprintf(dst, size, "no right to read process %d: %s", (int)pid, reason);
}
