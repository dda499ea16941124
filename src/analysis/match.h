/* One way to match code by a regular expression, for rows and for the frames of stacks alike: it is
 * tried on the name, on the file, and on "file:line(name)", so that "^main$" finds what it looks
 * like and "app.py:12\(" finds a line. */
#ifndef PYROMETER_ANALYSIS_MATCH_H
#define PYROMETER_ANALYSIS_MATCH_H

#include "analysis/query.h"
#include "base/buf.h"

/* The room a caller lends for the joined text, so that many matches allocate once. */
enum { ANALYSIS_MATCH_BYTES_MAX = 16 << 20 };

bool analysis_match_text(const regex_t *match, struct profile_string text);

/* `scratch` was made with ANALYSIS_MATCH_BYTES_MAX; its sticky error says that memory ran out. */
bool analysis_match_code(const regex_t *match, struct profile_string name,
                         struct profile_string file, uint32_t line, struct buf *scratch);

/* A C function as pstats prints it: "{built-in method time.sleep}" for "<built-in method time.sleep>". */
void analysis_match_c_name(struct profile_string name, struct buf *out);
bool analysis_match_c(const regex_t *match, struct profile_string name, struct buf *scratch);

/* Which nodes of the trie the query's --include and --exclude leave: one byte a node, owned by the
 * caller. NULL in *ret if the query has neither. O(nodes) and one match for each distinct line. */
int analysis_match_nodes(const struct profile_tables *t, const struct analysis_query *q,
                         uint8_t **ret);

#endif
