/* A folder given as RUN: what is in it that could be. */
#include "cmd/folder.h"

#include "base/err.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "format/reader.h"
#include "profile/profile.h"
#include "view/emit.h"
#include "view/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { COMMAND_BYTES_MAX = 4096, ENTRIES_MAX = 100000 };

struct entry {
    char *name, *command; /* owned */
    const char *kind;
    uint64_t bytes;
};

typedef VEC(struct entry) entry_vec;

static int on_meta(void *ctx, const char *key, size_t key_len, const char *value, size_t value_len)
{
    struct buf *command = ctx;
    if (key_len == strlen("command") && !memcmp(key, "command", key_len)) {
        buf_clear(command);
        view_text_escape(command, value, min_u64(value_len, COMMAND_BYTES_MAX / 8));
    }
    return 0;
}

/* The recorded command, or nothing. */
static char *read_command(const char *path)
{
    static const struct format_visitor visitor = {.meta = on_meta};
    struct format_reader *reader;
    if (format_reader_open(path, &reader) < 0)
        return NULL;
    struct buf command;
    buf_init(&command, COMMAND_BYTES_MAX);
    format_reader_visit(reader, &visitor, &command, NULL);
    format_reader_free(reader);
    return buf_detach(&command);
}

static int add_entry(entry_vec *entries, const char *folder, const char *name, size_t *others)
{
    _cleanup_free_ char *path = NULL;
    struct stat st;
    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        path = NULL;
        return E_NOMEM;
    }
    const char *kind = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? profile_kind(path) : NULL;
    if (!kind || entries->len >= ENTRIES_MAX) {
        (*others)++;
        return 0;
    }
    struct entry *entry = vec_push(entries);
    if (!entry)
        return E_NOMEM;
    entry->name = strdup(name);
    entry->kind = kind;
    entry->bytes = (uint64_t)st.st_size;
    entry->command = strcmp(kind, "recording") == 0 ? read_command(path) : NULL;
    return entry->name ? 0 : E_NOMEM;
}

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int print_entries(const entry_vec *entries)
{
    static const struct view_column columns[] = {
        {NULL, "name", VIEW_NAME, VIEW_ONLY_TEXT},
        {NULL, "kind", VIEW_NAME, VIEW_ONLY_TEXT},
        {NULL, "size", VIEW_BYTES, VIEW_ONLY_TEXT},
        {NULL, "command", VIEW_NAME, VIEW_ONLY_TEXT},
    };
    struct view_emit emit;
    view_emit_init(&emit, cmd_stdout(), VIEW_TEXT, view_style_of(stdout));
    view_emit_table_begin(&emit, "files", columns, ARRAY_LEN(columns), false);
    for (size_t i = 0; i < entries->len; i++) {
        const struct entry *e = &entries->data[i];
        const char *command = e->command ? e->command : "";
        struct view_cell cells[] = {
            {.text = e->name, .len = strlen(e->name)},
            {.text = e->kind, .len = strlen(e->kind)},
            {.real = (double)e->bytes, .count = e->bytes},
            {.text = command, .len = strlen(command)},
        };
        view_emit_row_begin(&emit, cells);
        view_emit_row_end(&emit);
    }
    view_emit_table_end(&emit);
    return view_emit_finish(&emit);
}

static int list(DIR *dir, const char *path)
{
    entry_vec entries = {0};
    size_t others = 0;
    int r = 0;
    for (const struct dirent *d; r == 0 && (d = readdir(dir));)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            r = add_entry(&entries, path, d->d_name, &others);
    if (entries.len)
        qsort(entries.data, entries.len, sizeof *entries.data, by_name);
    int status = CMD_LISTED;
    errno = 0;
    if (r == 0 && !entries.len)
        status = cmd_fail(CMD_FAILED, "'%s' is a directory, and there is no profile in it", path);
    else if (r == 0 && (r = print_entries(&entries)) < 0)
        status = cmd_output_failed("the list", r, errno);
    else if (r < 0)
        status = cmd_fail(CMD_FAILED, "cannot list '%s': %s", path, err_text(r));
    if (status == CMD_LISTED && others)
        printf("… and %zu other%s\n", others, others == 1 ? "" : "s");
    for (size_t i = 0; i < entries.len; i++) {
        free(entries.data[i].name);
        free(entries.data[i].command);
    }
    vec_release(&entries);
    return status;
}

int cmd_folder_list(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return cmd_fail(CMD_FAILED, "cannot list '%s': %s", path, err_text(err_from_errno(errno)));
    int status = list(dir, path);
    closedir(dir);
    return status;
}
