/* From a source path to the name its user imports it by. There is no record of sys.path, so this
 * goes by the places where Python keeps modules; elsewhere the file's own name must do. */
#include "analysis/rows.h"
#include "base/attr.h"

#include <ctype.h>
#include <string.h>

static const char *find_last(const char *path, const char *what)
{
    const char *last = NULL;
    for (const char *p = path; (p = strstr(p, what)); p++)
        last = p;
    return last;
}

/* Past ".../lib/python3.11/" (or lib64, or python3.13t), or NULL. */
static const char *after_stdlib(const char *path)
{
    const char *p = find_last(path, "/python3.");
    if (!p)
        return NULL;
    p += strlen("/python3.");
    while (isalnum((unsigned char)*p))
        p++;
    if (*p != '/')
        return NULL;
    p++;
    static const char dynload[] = "lib-dynload/";
    return strncmp(p, dynload, strlen(dynload)) == 0 ? p + strlen(dynload) : p;
}

static const char *after_packages(const char *path)
{
    static const char *const places[] = {"/site-packages/", "/dist-packages/"};
    const char *best = NULL;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *p = find_last(path, places[i]);
        if (p && p + strlen(places[i]) > best)
            best = p + strlen(places[i]);
    }
    return best;
}

static void cut_suffix(char *text, const char *suffix)
{
    size_t len = strlen(text), n = strlen(suffix);
    if (len > n && strcmp(text + len - n, suffix) == 0)
        text[len - n] = '\0';
}

static char *module_of_pseudo(const char *path)
{
    static const char frozen[] = "<frozen ";
    size_t len = strlen(path), n = strlen(frozen);
    if (len > n + 1 && strncmp(path, frozen, n) == 0 && path[len - 1] == '>')
        return strndup(path + n, len - n - 1);
    return strdup(path);
}

bool analysis_module_is_bare(const char *path, size_t len)
{
    _cleanup_free_ char *text = strndup(path, len);
    return text && text[0] && text[0] != '<' && !after_packages(text) && !after_stdlib(text);
}

char *analysis_module_name(const char *path, size_t len)
{
    _cleanup_free_ char *text = strndup(path, len);
    if (!text)
        return NULL;
    if (text[0] == '<' || text[0] == '\0')
        return module_of_pseudo(text);
    cut_suffix(text, ".pyc");
    cut_suffix(text, ".pyw");
    cut_suffix(text, ".py");
    cut_suffix(text, "/__init__");
    const char *name = after_packages(text);
    if (!name)
        name = after_stdlib(text);
    if (!name || !*name) {
        const char *slash = strrchr(text, '/');
        name = slash && slash[1] ? slash + 1 : text;
    }
    char *module = strdup(name);
    for (char *p = module; p && *p; p++)
        if (*p == '/')
            *p = '.';
    return module;
}
