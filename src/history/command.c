/* Commands as text: how one is shown, and by what runs of the same one are known. */
#include "base/buf.h"
#include "history/run.h"

enum { MAX_WORDS = 1 << 16 };

/* Characters that no shell gives a meaning to. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%^";
    return *word && word[strspn(word, plain)] == '\0';
}

static void put_word(struct buf *b, const char *word)
{
    if (b->len)
        buf_put_u8(b, ' ');
    if (is_plain(word)) {
        buf_puts(b, word);
        return;
    }
    buf_put_u8(b, '\'');
    for (const char *p = word; *p; p++) {
        if (*p == '\'')
            buf_puts(b, "'\\''");
        else
            buf_put_u8(b, (uint8_t)*p);
    }
    buf_put_u8(b, '\'');
}

/* The program's name as the key has it. */
static const char *program_key(const char *word)
{
    const char *slash = strrchr(word, '/');
    if (!slash)
        return word;
    const char *folder = slash;
    while (folder > word && folder[-1] != '/')
        folder--;
    size_t len = (size_t)(slash - folder);
    if (slash[1] &&
        ((len == 3 && !strncmp(folder, "bin", 3)) || (len == 4 && !strncmp(folder, "sbin", 4))))
        return slash + 1;
    while (!strncmp(word, "./", 2))
        word += 2;
    return word;
}

char *history_command_text(const char *const *argv, size_t count)
{
    struct buf b;
    buf_init(&b, HISTORY_MAX_COMMAND);
    for (size_t i = 0; i < count; i++)
        put_word(&b, argv[i]);
    return buf_detach(&b);
}

char *history_command_key(const char *const *argv, size_t count)
{
    struct buf b;
    buf_init(&b, HISTORY_MAX_COMMAND);
    for (size_t i = 0; i < count; i++)
        put_word(&b, i ? argv[i] : program_key(argv[0]));
    return buf_detach(&b);
}

/* Takes one word off the text, quotes removed, into `word`. False: an open quote. */
static bool take_word(const char **at, struct buf *word)
{
    char quote = 0;
    const char *p = *at;
    for (; *p && (quote || !strchr(" \t\n", *p)); p++) {
        if (quote == '\'' ? *p == '\'' : quote ? *p == quote : (*p == '\'' || *p == '"'))
            quote = quote ? 0 : *p;
        else if (*p == '\\' && quote != '\'' && p[1] && (!quote || strchr("\"\\$`", p[1])))
            buf_put_u8(word, (uint8_t) * ++p);
        else
            buf_put_u8(word, (uint8_t)*p);
    }
    *at = p;
    return !quote;
}

char *history_command_key_of_text(const char *text)
{
    VEC(char *) words = {0};
    bool ok = strnlen(text, HISTORY_MAX_COMMAND + 1) <= HISTORY_MAX_COMMAND;
    for (const char *at = text; ok;) {
        at += strspn(at, " \t\n");
        if (!*at || words.len >= MAX_WORDS)
            break;
        struct buf word;
        buf_init(&word, HISTORY_MAX_COMMAND);
        ok = take_word(&at, &word);
        char *copy = ok ? buf_detach(&word) : NULL;
        buf_release(&word);
        char **slot = copy ? vec_push(&words) : NULL;
        if (slot)
            *slot = copy;
        else
            free(copy);
        ok = slot != NULL;
    }
    char *key = ok && words.len ? history_command_key((const char *const *)words.data, words.len)
                                : strndup(text, HISTORY_MAX_COMMAND);
    for (size_t i = 0; i < words.len; i++)
        free(words.data[i]);
    vec_release(&words);
    return key;
}
