/* Code is told by its file: frozen modules have names of their own, and where the standard library is not
 * frozen (before 3.11, or with -X frozen_modules=off) its files end as they always did. */
#include "analysis/runtime.h"

#include "base/attr.h"
#include "base/err.h"

#include <string.h>

enum kind {
    PROGRAM = 0,
    STARTUP = 1, /* the interpreter's if everything above it is */
    IMPORT = 2,  /* the interpreter's, whoever imports */
    LIBRARY = 3, /* the interpreter's while it is imported: types and tables of its modules */
};

static const struct {
    const char *text;
    bool is_end; /* the file ends so; else it begins so */
    enum kind kind;
} FILES[] = {
    {"<frozen importlib", false, IMPORT},
    {"<frozen zipimport", false, IMPORT},
    {"/importlib/_bootstrap.py", true, IMPORT},
    {"/importlib/_bootstrap_external.py", true, IMPORT},
    {"/importlib/__init__.py", true, IMPORT},
    {"/zipimport.py", true, IMPORT},
    {"<frozen ", false, STARTUP},
    {"/site.py", true, STARTUP},
    {"/sitecustomize.py", true, STARTUP},
    {"/encodings/__init__.py", true, STARTUP},
    {"/runpy.py", true, STARTUP},
};

/* …/lib/python3.12/json/decoder.py, but nothing that was installed beside it. */
static bool is_library(struct profile_string file)
{
    static const char *const folders[] = {"/lib/python3.", "/lib64/python3."};
    static const char *const others[] = {"/site-packages/", "/dist-packages/"};
    const char *at = NULL, *end = file.text + file.len;
    for (size_t i = 0; i < ARRAY_LEN(folders) && !at; i++) {
        at = memmem(file.text, file.len, folders[i], strlen(folders[i]));
        at = at ? at + strlen(folders[i]) : NULL;
    }
    if (!at)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (memmem(at, (size_t)(end - at), others[i], strlen(others[i])))
            return false;
    return true;
}

static enum kind kind_of(struct profile_string file)
{
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        size_t len = strlen(FILES[i].text);
        if (file.len < len)
            continue;
        const char *at = FILES[i].is_end ? file.text + file.len - len : file.text;
        if (memcmp(at, FILES[i].text, len) == 0)
            return FILES[i].kind;
    }
    return is_library(file) ? LIBRARY : PROGRAM;
}

int analysis_runtime_nodes(const struct profile_tables *t, uint8_t **ret)
{
    uint8_t *own = calloc(t->node_count + 1, 1);
    _cleanup_free_ uint8_t *above = calloc(t->node_count + 1, 1); /* no frame is the program's */
    _cleanup_free_ uint8_t *kind = calloc(t->code_count + 1, 1);
    if (!own || !above || !kind) {
        free(own);
        return E_NOMEM;
    }
    for (size_t i = 0; i < t->code_count; i++)
        kind[i] = kind_of(t->strings[t->codes[i].file]);
    own[RECORD_STACK_ROOT] = above[RECORD_STACK_ROOT] = 1;
    for (size_t i = 1; i < t->node_count; i++) {
        enum kind k = kind[t->node_code[i]];
        uint32_t parent = t->node_parent[i];
        above[i] = above[parent] && k != PROGRAM && k != LIBRARY;
        own[i] =
            k == IMPORT || above[i] || (own[parent] && parent != RECORD_STACK_ROOT && k != PROGRAM);
    }
    *ret = own;
    return 0;
}
