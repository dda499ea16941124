/* A gzip stream over a FILE. Inside src/export only; zlib is known to gzip.c alone. */
#ifndef PYROMETER_EXPORT_GZIP_H
#define PYROMETER_EXPORT_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct export_gzip;

/* `out` is borrowed. */
int export_gzip_new(FILE *out, struct export_gzip **ret);
int export_gzip_write(struct export_gzip *g, const void *data, size_t len);

/* Ends the stream; the file stays open. */
int export_gzip_finish(struct export_gzip *g);
void export_gzip_free(struct export_gzip *g);

#endif
