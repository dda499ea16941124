/* The picture behind both kinds of flame graph: blocks with a place and a label, labels as harmless
 * text, headings, colours. Inside view only (and for unit tests). */
#ifndef PYROMETER_VIEW_FLAME_PICTURE_H
#define PYROMETER_VIEW_FLAME_PICTURE_H

#include "base/buf.h"
#include "base/vec.h"
#include "view/flame.h"

enum flame_kind { FLAME_CODE, FLAME_SPECIAL, FLAME_THREAD, FLAME_ROOT, FLAME_FOLDED };

enum { FLAME_SHADES = 7 };

struct flame_label {
    enum flame_kind kind;
    char *name;            /* owned; escaped as for a terminal, and cut */
    uint32_t module, file; /* into modules and files; 0 is none */
    uint32_t line;
    uint32_t hue;   /* its module's; its own where it has none */
    uint32_t shade; /* below FLAME_SHADES, by the name: tells a module's functions apart */
};

struct flame_module {
    char *name;   /* owned */
    uint32_t hue; /* 0–359: the same for a module in every picture */
};

struct flame_block {
    uint32_t label, depth, lane;
    uint32_t folded;   /* how many blocks this one stands for */
    uint64_t x, width; /* in the picture's span */
    struct analysis_weight self, total;
    struct analysis_weight before_self, before_total;
};

struct flame_lane {
    char *name; /* owned */
    uint32_t depth;
    struct analysis_weight total;
};

struct flame_lines {
    VEC(char *) text; /* each owned */
};

struct flame_picture {
    const struct view_flame *flame; /* borrowed */
    VEC(struct flame_label) labels;
    VEC(struct flame_module) modules; /* [0] is "" */
    VEC(char *) files;                /* owned; [0] is "" */
    VEC(struct flame_block) blocks;   /* callers before what they call, from left to right */
    VEC(struct flame_lane) lanes;     /* one without a name for a tree */
    uint64_t span;                    /* what the picture is wide */
    uint64_t from_ns;                 /* time of its left edge, along time */
    struct analysis_weight total, before;
    uint64_t hottest;      /* the largest self */
    double largest_change; /* of a share, 0–1 */
    struct buf title;
    struct flame_lines facts; /* the heading */
    struct flame_lines notes; /* what is left out or was lost */
};

int flame_picture_init(const struct view_flame *flame, struct flame_picture *ret);
void flame_picture_release(struct flame_picture *p);

/* Title, facts and notes of a picture that has its blocks. */
int flame_heading_fill(struct flame_picture *p);

/* How much the share of the total changed, -1 to 1. */
double flame_change(const struct flame_picture *p, const struct flame_block *b);

/* 0xrrggbb, by the picture's own choice of colour. */
uint32_t flame_colour(const struct flame_picture *p, const struct flame_block *b);

/* A weight in words: "1.23 s". */
void flame_weight_text(const struct flame_picture *p, uint64_t weight, struct buf *out);

#endif
