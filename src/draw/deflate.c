/* Bytes become tokens, which are bytes or repetitions; tokens become blocks, each with Huffman codes
 * of its own. A repetition is found by a table of where four bytes were last seen, or is a run of one
 * byte, which is looked for first. */
#include "draw/deflate.h"

#include "base/err.h"

#include <stdlib.h>

enum {
    TOKENS = 1 << 15, /* of a block */
    HASH_BITS = 13,
    WINDOW = 32768,
    MATCH_LEAST = 3,
    MATCH_MOST = 258,
    SEEN_BYTES = 4, /* that are looked up */
    END_OF_BLOCK = 256,
    LITERALS = 286,
    DISTANCES = 30,
    LENGTHS = 19, /* codes for the lengths of codes */
    BITS_MOST = 15,
    LENGTHS_BITS_MOST = 7,
    SYMBOLS_MOST = LITERALS,
};

/* A repetition: 1 << 31 | (length - 3) << 16 | (distance - 1); else a byte. */
#define IS_MATCH 0x80000000u

struct code {
    uint16_t bits[SYMBOLS_MOST]; /* the first to be sent in the lowest place */
    uint8_t length[SYMBOLS_MOST];
};

struct draw_deflate {
    struct buf *out;
    uint64_t pending; /* bits that are no whole byte yet */
    unsigned pending_count;
    uint32_t seen[1 << HASH_BITS]; /* where four bytes were, plus one; 0: nowhere */
    uint32_t token[TOKENS];
    size_t token_count;
    uint32_t literal_count[LITERALS], distance_count[DISTANCES];
};

struct draw_deflate *draw_deflate_new(struct buf *out)
{
    struct draw_deflate *d = calloc(1, sizeof *d);
    if (d)
        d->out = out;
    return d;
}

void draw_deflate_free(struct draw_deflate *d)
{
    free(d);
}

/* --- bits --- */

static void put_bits(struct draw_deflate *d, uint32_t bits, unsigned count)
{
    d->pending |= (uint64_t)bits << d->pending_count;
    d->pending_count += count;
    while (d->pending_count >= 8) {
        buf_put_u8(d->out, (uint8_t)d->pending);
        d->pending >>= 8;
        d->pending_count -= 8;
    }
}

static void put_symbol(struct draw_deflate *d, const struct code *c, uint32_t symbol)
{
    put_bits(d, c->bits[symbol], c->length[symbol]);
}

/* --- Huffman codes --- */

struct leaf {
    uint32_t count;
    uint16_t symbol;
};

static int compare_leaves(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return (x->symbol > y->symbol) - (x->symbol < y->symbol);
}

/* The depth of each leaf (they are sorted) in the tree that joins the two lightest again and again;
 * the deepest. What is joined comes out sorted too, so the lightest is at the head of one of two
 * queues. */
static unsigned find_depths(const struct leaf *leaf, unsigned n, uint8_t *depth)
{
    uint32_t sum[SYMBOLS_MOST];
    uint16_t up[2 * SYMBOLS_MOST]; /* leaves first, then what was joined */
    uint8_t down[SYMBOLS_MOST];
    unsigned next_leaf = 0, next_sum = 0, deepest = 0;
    for (unsigned made = 0; made + 1 < n; made++) {
        sum[made] = 0;
        for (int k = 0; k < 2; k++) {
            bool is_leaf =
                next_leaf < n && (next_sum == made || leaf[next_leaf].count <= sum[next_sum]);
            sum[made] += is_leaf ? leaf[next_leaf].count : sum[next_sum];
            up[is_leaf ? next_leaf++ : n + next_sum++] = (uint16_t)made;
        }
    }
    down[n - 2] = 0; /* the root */
    for (unsigned i = n - 2; i-- > 0;)
        down[i] = (uint8_t)(down[up[n + i]] + 1);
    for (unsigned i = 0; i < n; i++) {
        depth[i] = (uint8_t)(down[up[i]] + 1);
        deepest = depth[i] > deepest ? depth[i] : deepest;
    }
    return deepest;
}

/* Codes of one length follow each other, shorter ones first; that is how a reader finds them. */
static void number_codes(struct code *c, unsigned symbols)
{
    unsigned count[BITS_MOST + 1] = {0}, next[BITS_MOST + 1] = {0};
    for (unsigned i = 0; i < symbols; i++)
        count[c->length[i]] += c->length[i] != 0;
    for (unsigned i = 1; i <= BITS_MOST; i++)
        next[i] = (next[i - 1] + count[i - 1]) << 1; /* the first of length i */
    for (unsigned i = 0; i < symbols; i++) {
        unsigned bits = c->length[i] ? next[c->length[i]]++ : 0, reversed = 0;
        for (unsigned k = 0; k < c->length[i]; k++)
            reversed |= (bits >> k & 1) << (c->length[i] - 1 - k);
        c->bits[i] = (uint16_t)reversed;
    }
}

/* `count` has at least two places. Where only one symbol is used, another gets a code too: one alone
 * would need no bits, which not every reader takes. */
static void make_code(const uint32_t *count, unsigned symbols, unsigned most, struct code *ret)
{
    struct leaf leaf[SYMBOLS_MOST];
    uint8_t depth[SYMBOLS_MOST];
    unsigned n = 0;
    memset(ret->length, 0, sizeof ret->length);
    for (unsigned i = 0; i < symbols; i++)
        if (count[i])
            leaf[n++] = (struct leaf){count[i], (uint16_t)i};
    for (uint16_t i = 0; n < 2; i++)
        if (!count[i])
            leaf[n++] = (struct leaf){1, i};
    qsort(leaf, n, sizeof *leaf, compare_leaves);
    while (find_depths(leaf, n, depth) > most)
        for (unsigned i = 0; i < n; i++)
            leaf[i].count = leaf[i].count / 2 + 1; /* flatter, and still sorted */
    for (unsigned i = 0; i < n; i++)
        ret->length[leaf[i].symbol] = depth[i];
    number_codes(ret, symbols);
}

/* --- lengths and distances --- */

/* A number as a symbol and some bits behind it. */
struct coded {
    unsigned symbol, bits, bit_count;
};

static unsigned log2_of(uint32_t v)
{
    return 31u - (unsigned)__builtin_clz(v);
}

static inline struct coded code_length(uint32_t less_3)
{
    if (less_3 < 8)
        return (struct coded){257 + less_3, 0, 0};
    if (less_3 == MATCH_MOST - MATCH_LEAST)
        return (struct coded){LITERALS - 1, 0, 0};
    unsigned k = log2_of(less_3) - 2;
    return (struct coded){257 + 4 * k + (less_3 >> k), less_3 & ((1u << k) - 1), k};
}

static inline struct coded code_distance(uint32_t less_1)
{
    if (less_1 < 4)
        return (struct coded){less_1, 0, 0};
    unsigned k = log2_of(less_1) - 1;
    return (struct coded){2 * k + (less_1 >> k), less_1 & ((1u << k) - 1), k};
}

/* --- blocks --- */

/* The lengths of all codes, as symbols: a length, or a number of zeros (17: 3 to 10, 18: 11 to 138). */
static unsigned pack_lengths(const uint8_t *length, unsigned n, uint8_t *symbol, uint8_t *extra)
{
    unsigned made = 0;
    for (unsigned i = 0, zeros; i < n; i += zeros ? zeros : 1) {
        for (zeros = 0; i + zeros < n && zeros < 138 && !length[i + zeros];)
            zeros++;
        if (zeros < 3)
            zeros = 0;
        symbol[made] = zeros > 10 ? 18 : zeros ? 17 : length[i];
        extra[made++] = (uint8_t)(zeros > 10 ? zeros - 11 : zeros ? zeros - 3 : 0);
    }
    return made;
}

static void put_codes(struct draw_deflate *d, const struct code *literals,
                      const struct code *distances)
{
    static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                           11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t length[LITERALS + DISTANCES], symbol[sizeof length], extra[sizeof length];
    uint32_t count[LENGTHS] = {0};
    struct code lengths;
    memcpy(length, literals->length, LITERALS);
    memcpy(length + LITERALS, distances->length, DISTANCES);
    unsigned n = pack_lengths(length, sizeof length, symbol, extra);
    for (unsigned i = 0; i < n; i++)
        count[symbol[i]]++;
    make_code(count, LENGTHS, LENGTHS_BITS_MOST, &lengths);
    put_bits(d, LITERALS - 257, 5);
    put_bits(d, DISTANCES - 1, 5);
    put_bits(d, LENGTHS - 4, 4);
    for (unsigned i = 0; i < LENGTHS; i++)
        put_bits(d, lengths.length[order[i]], 3);
    for (unsigned i = 0; i < n; i++) {
        put_symbol(d, &lengths, symbol[i]);
        if (symbol[i] >= 17)
            put_bits(d, extra[i], symbol[i] == 17 ? 3 : 7);
    }
}

static void put_block(struct draw_deflate *d)
{
    struct code literals, distances;
    if (!d->token_count)
        return;
    d->literal_count[END_OF_BLOCK] = 1;
    make_code(d->literal_count, LITERALS, BITS_MOST, &literals);
    make_code(d->distance_count, DISTANCES, BITS_MOST, &distances);
    put_bits(d, 2 << 1, 3); /* not the last; with codes of its own */
    put_codes(d, &literals, &distances);
    for (size_t i = 0; i < d->token_count; i++) {
        uint32_t token = d->token[i];
        if (!(token & IS_MATCH)) {
            put_symbol(d, &literals, token);
            continue;
        }
        struct coded length = code_length(token >> 16 & 0xff);
        struct coded distance = code_distance(token & 0xffff);
        put_symbol(d, &literals, length.symbol);
        put_bits(d, length.bits, length.bit_count);
        put_symbol(d, &distances, distance.symbol);
        put_bits(d, distance.bits, distance.bit_count);
    }
    put_symbol(d, &literals, END_OF_BLOCK);
    d->token_count = 0;
    memset(d->literal_count, 0, sizeof d->literal_count);
    memset(d->distance_count, 0, sizeof d->distance_count);
}

/* --- tokens --- */

static void add_token(struct draw_deflate *d, uint32_t token)
{
    d->token[d->token_count++] = token;
    if (d->token_count == TOKENS)
        put_block(d);
}

static void add_literal(struct draw_deflate *d, uint8_t byte)
{
    d->literal_count[byte]++;
    add_token(d, byte);
}

static void add_match(struct draw_deflate *d, uint32_t length, uint32_t distance)
{
    d->literal_count[code_length(length - MATCH_LEAST).symbol]++;
    d->distance_count[code_distance(distance - 1).symbol]++;
    add_token(d, IS_MATCH | (length - MATCH_LEAST) << 16 | (distance - 1));
}

/* How many bytes are alike, `most` at most. */
static size_t count_alike(const uint8_t *a, const uint8_t *b, size_t most)
{
    size_t n = 0;
    uint64_t x, y;
    for (; n + sizeof x <= most; n += sizeof x) {
        memcpy(&x, a + n, sizeof x);
        memcpy(&y, b + n, sizeof y);
        if (x != y)
            return n + (size_t)__builtin_ctzll(x ^ y) / 8;
    }
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

/* A run of the byte before: as many repetitions as it takes; what is left over are bytes. */
static void add_run(struct draw_deflate *d, uint8_t byte, size_t length)
{
    while (length >= MATCH_LEAST) {
        uint32_t part = (uint32_t)(length < MATCH_MOST ? length : MATCH_MOST);
        add_match(d, part, 1);
        length -= part;
    }
    while (length--)
        add_literal(d, byte);
}

/* Where the next four bytes were before, if they were; and they are here now. */
static size_t look_up(struct draw_deflate *d, const uint8_t *data, size_t at, size_t len)
{
    uint32_t four;
    if (len - at < SEEN_BYTES)
        return SIZE_MAX;
    memcpy(&four, data + at, sizeof four);
    uint32_t *seen = &d->seen[four * 2654435761u >> (32 - HASH_BITS)];
    size_t before = *seen;
    *seen = (uint32_t)at + 1;
    bool is_match =
        before && at - (before - 1) <= WINDOW && memcmp(data + before - 1, &four, 4) == 0;
    return is_match ? before - 1 : SIZE_MAX;
}

void draw_deflate_add(struct draw_deflate *d, const uint8_t *data, size_t len)
{
    memset(d->seen, 0, sizeof d->seen);
    for (size_t at = 0; at < len;) {
        size_t run = at ? count_alike(data + at - 1, data + at, len - at) : 0;
        if (run >= MATCH_LEAST) {
            add_run(d, data[at], run);
            at += run;
            continue;
        }
        size_t before = look_up(d, data, at, len);
        if (before == SIZE_MAX) {
            add_literal(d, data[at++]);
            continue;
        }
        size_t most = len - at < MATCH_MOST ? len - at : MATCH_MOST;
        size_t length = count_alike(data + before, data + at, most);
        add_match(d, (uint32_t)length, (uint32_t)(at - before));
        at += length;
    }
}

void draw_deflate_end(struct draw_deflate *d, bool is_last)
{
    put_block(d);
    if (is_last) {
        put_bits(d, 1 | 1 << 1, 3); /* the last, with the codes that everybody knows */
        put_bits(d, 0, 7);          /* and nothing in it */
    } else {
        put_bits(d, 0, 3); /* bytes as they are: none, on whole bytes from here on */
    }
    put_bits(d, 0, (8 - d->pending_count) % 8);
    if (!is_last)
        buf_append(d->out, "\0\0\xff\xff", 4);
}
