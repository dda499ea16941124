/* The door: finds the command in the table and hands over. What a command does, prints and returns
 * is its own file's business; here is only what holds for all of them.
 *
 * SIGPIPE is left as it was found: a reader that goes away (`pyrometer report | head`) ends us
 * quietly, and the program that `run` starts inherits nothing of ours. */
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/speak.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#ifndef PYROMETER_VERSION
#define PYROMETER_VERSION "unknown" /* the build gives it */
#endif

static const struct cmd commands[] = {
#define X(name, function, group, summary) {#name, function, group, summary},
    CMD_TABLE(X)
#undef X
};

/* Group in CMD_TABLE, heading in the overview. */
static const struct {
    const char *group;
    const char *heading;
} groups[] = {
    {"record", "Record a program"},
    {"look", "Look at a recording"},
    {"files", "Look after the files and the tool"},
};

static const struct cmd *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    }
    return NULL;
}

/* Commands from the table, the rest from docs/man/pyrometer.md. */
static void print_overview(FILE *out)
{
    fputs("pyrometer: where the time of a Python program went\n", out);
    for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
        fprintf(out, "\n%s:\n", groups[g].heading);
        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
            if (!strcmp(commands[i].group, groups[g].group))
                fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
        }
    }
    const char *rest = cmd_help_text("pyrometer");
    if (rest)
        fprintf(out, "\n%s", rest);
}

static bool looks_like_a_program(const char *word)
{
    size_t len = strlen(word);
    return !strncmp(word, "python", 6) || (len > 3 && !strcmp(word + len - 3, ".py"));
}

static int unknown_command(const char *word)
{
    struct cmd_near near = {.word = word};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        cmd_near_offer(&near, commands[i].name);
    cmd_near_offer(&near, "help");
    if (near.best)
        return cmd_fail(CMD_USAGE, "'%s' is not a command (did you mean '%s'?)", word, near.best);
    if (looks_like_a_program(word))
        return cmd_fail(CMD_USAGE,
                        "'%s' is not a command; to record a program: pyrometer run python app.py",
                        word);
    return cmd_fail(CMD_USAGE, "'%s' is not a command; 'pyrometer --help' lists them", word);
}

static int unknown_option(const char *option)
{
    struct cmd_near near = {.word = option};
    cmd_near_offer(&near, "--help");
    cmd_near_offer(&near, "--version");
    if (near.best)
        return cmd_fail(CMD_USAGE, "unknown option %s (did you mean %s?)", option, near.best);
    return cmd_fail(CMD_USAGE, "unknown option %s; the command comes first, see 'pyrometer --help'",
                    option);
}

static int help(int argc, char **argv)
{
    if (argc > 2)
        return cmd_fail(CMD_USAGE, "help takes one command, not %d", argc - 1);
    const char *word = argc == 2 ? argv[1] : "help";
    if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h")) {
        print_overview(stdout);
        return CMD_OK;
    }
    const char *text = find_command(word) ? cmd_help_text(word) : NULL;
    if (!text)
        return unknown_command(word);
    fputs(text, stdout);
    return CMD_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return CMD_USAGE;
    }
    const char *word = argv[1];
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        puts("pyrometer " PYROMETER_VERSION);
        return CMD_OK;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        print_overview(stdout);
        return CMD_OK;
    }
    if (!strcmp(word, "help"))
        return help(argc - 1, argv + 1);
    if (word[0] == '-')
        return unknown_option(word);
    const struct cmd *cmd = find_command(word);
    return cmd ? cmd->run(argc - 1, argv + 1) : unknown_command(word);
}

/* If we were started with a standard stream closed, the next file we open would take its number and
 * our prints would land in it. Something that answers EBADF as a closed stream does keeps the
 * place, and is gone again in the program that `run` starts. */
static void keep_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            int mode = fd == 0 ? O_WRONLY : O_RDONLY;
            if (open("/dev/null", mode | O_CLOEXEC) < 0)
                return;
        }
    }
}

/* A table that did not reach its file is a failure, however well it was made. */
static int flush_output(int status)
{
    errno = 0;
    bool failed = fflush(stdout) != 0;
    int reason = failed ? errno : EIO;
    if (!failed && !ferror(stdout))
        return status;
    /* with SIGPIPE ignored by whoever started us, a reader that went away still needs no words */
    if (reason != EPIPE)
        cmd_fail(CMD_FAILED, "cannot write the output: %s", strerror(reason));
    return status == CMD_OK ? CMD_FAILED : status;
}

int main(int argc, char **argv)
{
    keep_standard_streams();
    int status = dispatch(argc, argv);
    cmd_progress_end();
    return flush_output(status == CMD_LISTED ? CMD_OK : status);
}
