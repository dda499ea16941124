/* The one list of errors. Functions return 0 or a negative code from here; libraries never print.
 * A command turns the code into its line with err_text(). Where the operating system said why, the
 * code is made by err_from_errno(), which keeps the common reasons apart and folds the rest. */
#ifndef PYROMETER_BASE_ERR_H
#define PYROMETER_BASE_ERR_H

/* code, name, message: the message completes the sentence "cannot …: <message>" */
#define ERR_LIST(X)                                                                                \
    X(NOMEM, "out of memory")                                                                      \
    X(LIMIT, "a size limit was exceeded")                                                          \
    X(IO, "input/output error")                                                                    \
    X(NOSPACE, "no space left on the device")                                                      \
    X(NOENT, "no such file or directory")                                                          \
    X(EXISTS, "it exists already")                                                                 \
    X(ACCESS, "permission denied")                                                                 \
    X(ISDIR, "it is a directory")                                                                  \
    X(NOTFILE, "it is a pipe or a device: save it to a file first")                                \
    X(PERM, "no right to read that process")                                                       \
    X(NOPROC, "no such process")                                                                   \
    X(NOTPYTHON, "not a Python process")                                                           \
    X(NOTREADY, "the interpreter is not running yet")                                              \
    X(REPLACED, "the interpreter's file was replaced or removed since the process started")        \
    X(VERSION, "a CPython version that is not supported")                                          \
    X(BADMEM, "the process's memory does not look like an interpreter")                            \
    X(FORMAT, "not a Pyrometer recording")                                                         \
    X(NEWER, "written by a newer Pyrometer")                                                       \
    X(CORRUPT, "the file is damaged")                                                              \
    X(EMPTY, "the file is empty")                                                                  \
    X(SHORT, "it is cut off in its header: there is nothing in it")                                \
    X(BADSTACKS, "a line of the collapsed stacks is not a stack and a number")                     \
    X(BADJSON, "the JSON is damaged, or is not a speedscope file")                                 \
    X(BADPSTATS, "the pstats file is damaged or cut off")                                          \
    X(BADTOML, "it is not TOML")                                                                   \
    X(NOAGENT, "libpyrometer-agent.so is not beside the program, nor where it is installed")       \
    X(INVALID, "invalid argument")                                                                 \
    X(AMBIGUOUS, "more than one matches")                                                          \
    X(HISTORY, "not a history of runs")                                                            \
    X(BUSY, "another process holds it")                                                            \
    X(FILES, "too many open files: raise the limit with ulimit -n")                                \
    X(SYSTEM, "the system refused")

enum err_code {
    ERR_OK_ = 0,
#define X(name, text) ERR_POS_##name,
    ERR_LIST(X)
#undef X
        ERR_COUNT_
};

enum {
#define X(name, text) E_##name = -ERR_POS_##name,
    ERR_LIST(X)
#undef X
};

/* The message for a code of ours; never NULL. */
const char *err_text(int code);

/* The name of a code ("NOSPACE"), for tests and JSON; never NULL. */
const char *err_name(int code);

/* Our code for an errno value (positive). */
int err_from_errno(int os_errno);

#endif
