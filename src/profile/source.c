#include "profile/source.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/srcfile.h"
#include "base/vec.h"

#include <fcntl.h>

struct kept {
    struct record_source record; /* its text is owned; NULL: none */
};

struct profile_sources {
    const struct profile *profile;
    int directory; /* where the recording was made; AT_FDCWD if that is no more */
    VEC(struct kept) kept;
    struct idxmap by_path; /* string id → kept */
    size_t text_bytes;
};

static uint32_t find_kept(const struct profile_sources *s, struct profile_string path)
{
    const struct profile_string *strings = profile_tables(s->profile)->strings;
    uint32_t at;
    IDXMAP_FIND(&s->by_path, hash_bytes(path.text, path.len), i,
                strings[s->kept.data[i].record.path].len == path.len &&
                    memcmp(strings[s->kept.data[i].record.path].text, path.text, path.len) == 0,
                at);
    return at;
}

static int on_source(void *ctx, const struct record_source *source)
{
    struct profile_sources *s = ctx;
    struct profile_string path = profile_tables(s->profile)->strings[source->path];
    uint32_t at = find_kept(s, path);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)s->kept.len;
        if (!vec_push(&s->kept))
            return E_NOMEM;
        s->kept.data[at].record.path = source->path;
        if (idxmap_insert(&s->by_path, hash_bytes(path.text, path.len), at) < 0)
            return E_NOMEM;
    }
    char *text = NULL;
    if (source->text && source->text_len <= PROFILE_SOURCE_MAX_KEPT - s->text_bytes) {
        text = malloc(source->text_len + 1);
        if (!text)
            return E_NOMEM;
        memcpy(text, source->text, source->text_len);
        s->text_bytes += source->text_len;
    }
    free((char *)s->kept.data[at].record.text); /* the last record counts */
    s->kept.data[at].record = *source;
    s->kept.data[at].record.text = text;
    return 0;
}

int profile_sources_new(const struct profile *p, struct profile_sources **ret)
{
    struct profile_sources *s = calloc(1, sizeof *s);
    if (!s)
        return E_NOMEM;
    s->profile = p;
    const char *directory = profile_meta_value(p, "directory");
    int fd = directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    s->directory = fd < 0 ? AT_FDCWD : fd;
    int r = profile_each_source(p, on_source, s);
    if (r < 0) {
        profile_sources_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void profile_sources_free(struct profile_sources *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->kept.len; i++)
        free((char *)s->kept.data[i].record.text);
    vec_release(&s->kept);
    idxmap_release(&s->by_path);
    if (s->directory >= 0)
        close(s->directory);
    free(s);
}

static bool is_same(const struct record_source *print, const struct srcfile *file)
{
    if (print->size != file->size)
        return false;
    if (!(print->flags & RECORD_SOURCE_HASHED))
        return print->mtime_ns == file->mtime_ns;
    return record_source_hash(file->text.len ? (void *)file->text.data : "", file->text.len) ==
           print->hash;
}

/* The file as it is now. False if there is none, or none that is worth showing. */
static bool read_disk(const struct profile_sources *s, struct profile_string path,
                      struct srcfile *ret)
{
    if (!path.len || path.text[0] == '<' || memchr(path.text, '\0', path.len))
        return false;
    struct srcfile_place recorded = {-1, s->directory}, here = {-1, AT_FDCWD};
    int r = srcfile_read(&recorded, path.text, PROFILE_SOURCE_MAX_BYTES, ret);
    if (r < 0 && path.text[0] != '/' && s->directory != AT_FDCWD)
        r = srcfile_read(&here, path.text, PROFILE_SOURCE_MAX_BYTES, ret);
    if (r == 0 && !ret->has_text)
        srcfile_release(ret);
    else if (r == 0)
        return true;
    return false;
}

static int use_kept(const struct record_source *print, struct profile_source *ret)
{
    ret->text = malloc(print->text_len + 1);
    if (!ret->text)
        return E_NOMEM;
    memcpy(ret->text, print->text, print->text_len);
    ret->len = print->text_len;
    ret->origin = PROFILE_SOURCE_KEPT;
    return 0;
}

int profile_source_find(const struct profile_sources *s, struct profile_string path,
                        struct profile_source *ret)
{
    struct profile_source source = {0};
    uint32_t at = find_kept(s, path);
    const struct record_source *print = at == IDXMAP_NONE ? NULL : &s->kept.data[at].record;
    struct srcfile file = {0};
    source.on_disk = read_disk(s, path, &file);
    source.changed = source.on_disk && print && !is_same(print, &file);
    int r = 0;
    if (print && print->text && (source.changed || !source.on_disk)) {
        r = use_kept(print, &source);
    } else if (source.on_disk) {
        source.origin = file.in_zip ? PROFILE_SOURCE_ZIP : PROFILE_SOURCE_FILE;
        source.len = file.text.len;
        source.text = buf_detach(&file.text);
        r = source.text ? 0 : E_NOMEM;
    }
    srcfile_release(&file);
    if (r == 0)
        *ret = source;
    return r;
}

void profile_source_release(struct profile_source *source)
{
    free(source->text);
    *source = (struct profile_source){0};
}
