/* The program's standard output and error on their way: passed on live, byte for byte and in order,
 * and kept up to a size. Inside src/meter.
 *
 * What our own streams are decides how:
 *   a pipe, a socket    the program gets a pipe of ours
 *   a terminal          a pseudo-terminal of ours: isatty() stays true, size and modes follow
 *   a regular file      the program keeps the file; what it wrote is read back at the end
 *   anything else       left alone, nothing is kept (/dev/null, a closed stream)
 * Where both streams are the same thing, they share one channel, or their order would be lost.
 *
 * The passing on is done by a process of its own, the relay, for three reasons: a slow reader never
 * holds up the sampler; if the recorder is killed, not a byte of the program's is lost; and a
 * grandchild that outlives the program is still listened to, without anybody waiting for it. The
 * relay is nobody's child, so it is not taken for a part of the program. It ends when the last
 * writer has closed. When the reader goes away, it closes its ends, and the program gets the
 * SIGPIPE it would have got. */
#ifndef PYROMETER_METER_RELAY_H
#define PYROMETER_METER_RELAY_H

#include "base/buf.h"

struct relay;

enum relay_stream { RELAY_STDOUT, RELAY_STDERR, RELAY_STREAMS };

/* Decides on the channels and starts the relay process where one is needed, or where `git_folder`
 * (may be NULL) has a work tree to be asked about. `capture` false: streams are not touched.
 * `keep` bytes of each stream are kept: its beginning and its end. */
int relay_new(bool capture, size_t keep, const char *git_folder, struct relay **ret);

/* In the child, before exec: its streams become our channels. */
void relay_enter(const struct relay *r);

/* In the parent, after the fork. */
void relay_started(struct relay *r);

/* The program has ended: returns when all that it had written is passed on, or after `patience_ns`
 * without any progress (a reader that does not read); what is left is then passed on later. */
void relay_drain(struct relay *r, uint64_t patience_ns);

/* What was kept of a stream; false if nothing was (not captured, or part of the other). */
bool relay_kept(struct relay *r, enum relay_stream stream, struct buf *ret, uint64_t *ret_total);
bool relay_is_merged(const struct relay *r);

/* Is the work tree changed? 1, 0, or -1: not known (yet, after waiting so long for the answer). */
int relay_git_dirty(const struct relay *r, uint64_t patience_ns);

/* The terminal of ours that the user's keystrokes may be meant for, if there are any; else NULL. keyboard.h says
 * whether somebody waits for them; then relay_hand_over(). For one thread beside the one that made the relay. */
const char *relay_typed_at(const struct relay *r);
void relay_hand_over(struct relay *r);

void relay_free(struct relay *r);

#endif
