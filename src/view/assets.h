/* Files of this folder that are part of a picture (scripts, styles, the page), as tools/embed.py
 * puts them into the program when it is built. */
#ifndef PYROMETER_VIEW_ASSETS_H
#define PYROMETER_VIEW_ASSETS_H

#include <stddef.h>

struct view_asset {
    const char *text;
    size_t len;
    const char *sha256; /* base64, as a content security policy names a script */
};

extern const struct view_asset VIEW_ASSET_FLAME_HTML;
extern const struct view_asset VIEW_ASSET_FLAME_CSS;
extern const struct view_asset VIEW_ASSET_FLAME_JS;
extern const struct view_asset VIEW_ASSET_FLAME_SVG_CSS;
extern const struct view_asset VIEW_ASSET_FLAME_SVG_JS;
extern const struct view_asset VIEW_ASSET_GRAPH_SVG_CSS;
extern const struct view_asset VIEW_ASSET_GRAPH_SVG_JS;
extern const struct view_asset VIEW_ASSET_TIMELINE_HTML;
extern const struct view_asset VIEW_ASSET_TIMELINE_CSS;
extern const struct view_asset VIEW_ASSET_TIMELINE_JS;

#endif
