/* The options of a command, parsed from its table. There is no central list: each command owns its
 * own, and this file only knows the six kinds.
 *
 * Accepted: --name, --name VALUE, --name=VALUE, -x, -x VALUE, -xVALUE, -xyz, and "--" to end the
 * options. Names are written out in full, so that a new option never breaks an old script. */
#include "cmd/cmd.h"
#include "cmd/speak.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct parse {
    const char *command;
    const struct cmd_option *options;
    bool stop_at_operand;
    int argc;
    char **argv;
    int at; /* the argument under the eye */
};

/* What became of an argument; the negative ones are CMD_PARSED_…. */
enum { TAKEN = 0 };

static int print_help(const struct parse *p)
{
    const char *text = cmd_help_text(p->command);
    fputs(text ? text : "There is no help for this command.\n", stdout);
    return CMD_PARSED_HELP;
}

static const char *kind_wants(enum cmd_option_kind kind)
{
    switch (kind) {
    case CMD_COUNT:
        return "a whole number";
    case CMD_REAL:
        return "a number, 0 or more";
    case CMD_FLAG:
    case CMD_TEXT:
    case CMD_OPT_TEXT:
    case CMD_EACH:
        break;
    }
    return "a value";
}

/* Digits only: strtoull alone would take blanks, signs and a rest. */
static bool parse_count(const char *text, uint64_t *ret)
{
    if (!*text || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 10);
    if (errno)
        return false;
    *ret = value;
    return true;
}

/* No sign, no hexadecimal, no "nan" and "inf": a plain decimal number. */
static bool parse_real(const char *text, double *ret)
{
    char *end;
    if (!strchr(".0123456789", *text) || text[strspn(text, "0123456789.eE+-")])
        return false;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

/* `shown` is the option as the user wrote it, with its dashes. */
static int store(const struct parse *p, const struct cmd_option *o, const char *shown,
                 const char *value)
{
    bool good = true;
    switch (o->kind) {
    case CMD_FLAG:
        *(bool *)o->target = true;
        break;
    case CMD_TEXT:
    case CMD_OPT_TEXT:
        *(const char **)o->target = value;
        break;
    case CMD_COUNT:
        good = parse_count(value, o->target);
        break;
    case CMD_REAL:
        good = parse_real(value, o->target);
        break;
    case CMD_EACH: {
        struct cmd_each *each = o->target;
        if (each->count == CMD_EACH_MAX)
            return cmd_fail_in(p->command, CMD_PARSED_ERROR,
                               "%s is there too often: %d times at most", shown, CMD_EACH_MAX);
        each->use[each->count].option = o->name;
        each->use[each->count++].value = value;
        break;
    }
    }
    if (!good)
        return cmd_fail_in(p->command, CMD_PARSED_ERROR, "%s needs %s, not '%s'", shown,
                           kind_wants(o->kind), value);
    if (o->given)
        *o->given = true;
    return TAKEN;
}

/* `run --sample 500 python x.py` would start a program called 500. */
static bool value_stands_apart(const struct parse *p)
{
    const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : "";
    return p->stop_at_operand && *next && !next[strspn(next, "0123456789.")];
}

/* `attached` is the value in the same argument, or NULL. */
static int take(struct parse *p, const struct cmd_option *o, const char *shown,
                const char *attached)
{
    switch (o->kind) {
    case CMD_FLAG:
        if (attached)
            return cmd_fail_in(p->command, CMD_PARSED_ERROR, "%s takes no value", shown);
        return store(p, o, shown, NULL);
    case CMD_OPT_TEXT:
        if (attached && !*attached)
            return cmd_fail_in(p->command, CMD_PARSED_ERROR, "%s= needs a value after the '='",
                               shown);
        if (!attached && value_stands_apart(p))
            return cmd_fail_in(p->command, CMD_PARSED_ERROR,
                               "%s takes its value after '=': write %s=%s", shown, shown,
                               p->argv[p->at + 1]);
        return store(p, o, shown, attached ? attached : "");
    case CMD_TEXT:
    case CMD_COUNT:
    case CMD_REAL:
    case CMD_EACH:
        break;
    }
    if (!attached) {
        if (p->at + 1 >= p->argc)
            return cmd_fail_in(p->command, CMD_PARSED_ERROR, "%s needs %s", shown,
                               kind_wants(o->kind));
        attached = p->argv[++p->at];
    }
    return store(p, o, shown, attached);
}

static int unknown_long(const struct parse *p, const char *name)
{
    struct cmd_near near = {.word = name};
    for (const struct cmd_option *o = p->options; o->name; o++)
        cmd_near_offer(&near, o->name);
    cmd_near_offer(&near, "help");
    if (near.best)
        return cmd_fail_in(p->command, CMD_PARSED_ERROR, "unknown option --%s (did you mean --%s?)",
                           name, near.best);
    return cmd_fail_in(p->command, CMD_PARSED_ERROR,
                       "unknown option --%s; see 'pyrometer %s --help'", name, p->command);
}

static int take_long(struct parse *p)
{
    const char *arg = p->argv[p->at];
    const char *equals = strchr(arg, '=');
    _cleanup_free_ char *shown = equals ? strndup(arg, (size_t)(equals - arg)) : strdup(arg);
    if (!shown)
        return cmd_fail_in(p->command, CMD_PARSED_ERROR, "out of memory");

    for (const struct cmd_option *o = p->options; o->name; o++) {
        if (!strcmp(o->name, shown + 2))
            return take(p, o, shown, equals ? equals + 1 : NULL);
    }
    if (strcmp(shown, "--help") != 0)
        return unknown_long(p, shown + 2);
    if (equals)
        return cmd_fail_in(p->command, CMD_PARSED_ERROR, "--help takes no value");
    return print_help(p);
}

static const struct cmd_option *find_letter(const struct parse *p, char letter)
{
    for (const struct cmd_option *o = p->options; o->name; o++) {
        if (o->letter == letter)
            return o;
    }
    return NULL;
}

static int unknown_letters(const struct parse *p, const char *arg)
{
    if (p->stop_at_operand && (arg[1] == 'm' || arg[1] == 'c')) /* as `python` takes them */
        return cmd_fail_in(
            p->command, CMD_PARSED_ERROR,
            "unknown option %.2s, which is Python's; try: pyrometer %s python3 %.2s …", arg,
            p->command, arg);
    return cmd_fail_in(p->command, CMD_PARSED_ERROR, "unknown option %s; see 'pyrometer %s --help'",
                       arg, p->command);
}

/* One argument may hold several flags, the last of which may have a value. */
static int take_letters(struct parse *p)
{
    const char *arg = p->argv[p->at];
    for (const char *s = arg + 1; *s; s++) {
        const struct cmd_option *o = find_letter(p, *s);
        if (!o && *s == 'h')
            return print_help(p);
        if (!o)
            return s == arg + 1 ? unknown_letters(p, arg)
                                : cmd_fail_in(p->command, CMD_PARSED_ERROR,
                                              "unknown option -%c in %s; see 'pyrometer %s --help'",
                                              *s, arg, p->command);
        const char shown[] = {'-', *s, '\0'};
        const char *rest = o->kind != CMD_FLAG && s[1] ? s + 1 : NULL;
        int r = take(p, o, shown, rest);
        if (r != TAKEN || o->kind != CMD_FLAG)
            return r;
    }
    return TAKEN;
}

/* Operands that stand between options are moved to the front of argv, behind argv[0]; options that
 * were taken are overwritten. With `stop_at_operand` argv is left as it was. */
int cmd_options_parse(int argc, char **argv, const struct cmd_option *options, bool stop_at_operand,
                      int *ret_first)
{
    struct parse p = {.command = argv[0],
                      .options = options,
                      .stop_at_operand = stop_at_operand,
                      .argc = argc,
                      .argv = argv,
                      .at = 1};
    int operands = 0;
    for (; p.at < argc; p.at++) {
        const char *arg = argv[p.at];
        bool is_option = arg[0] == '-' && arg[1];
        if (is_option && !strcmp(arg, "--")) {
            p.at++;
            break;
        }
        if (!is_option && stop_at_operand)
            break;
        if (!is_option) {
            argv[++operands] = argv[p.at];
            continue;
        }
        int r = arg[1] == '-' ? take_long(&p) : take_letters(&p);
        if (r != TAKEN)
            return r;
    }
    if (stop_at_operand) {
        *ret_first = p.at;
        return argc - p.at;
    }
    while (p.at < argc)
        argv[++operands] = argv[p.at++];
    argv[operands + 1] = NULL;
    *ret_first = 1;
    return operands;
}
