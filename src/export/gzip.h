/* A gzip stream over a FILE. Inside src/export only; zlib is known to gzip.c alone. */
#ifndef PYROMETER_EXPORT_GZIP_H
#define PYROMETER_EXPORT_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct export_gzip;

/* `out` is borrowed, and nobody else may touch it until the end: a thread writes to it. */
int export_gzip_new(FILE *out, struct export_gzip **ret);
int export_gzip_write(struct export_gzip *g, const void *data, size_t len);

/* Ends the stream and the thread; the file stays open. */
int export_gzip_finish(struct export_gzip *g);

/* Also ends a stream that was given up in the middle. */
void export_gzip_free(struct export_gzip *g);

#endif
