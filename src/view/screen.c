/* ncurses, kept in one room. It is used with newterm(), which returns where initscr() would exit; and
 * signals come through a descriptor, so that nothing of ours ever runs inside a handler. */
#include "view/screen.h"

#include "base/attr.h"
#include "base/err.h"
#include "view/text.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

enum {
    LINE_BYTES_MAX = 1 << 20,
    ESCAPE_MS = 50, /* what a terminal may need to send the rest of a key after its escape */
    CTRL_L = 12,
    DELETE = 127,
    ESCAPE = 27,
};

struct screen {
    SCREEN *terminal;
    bool colour;
    int signals; /* signalfd */
    int signal;  /* that asked to end */
    sigset_t old_mask;
    char *old_locale; /* owned */
    struct buf fit;
    struct termios old_modes;
};

bool screen_is_possible(void)
{
    const char *term = getenv("TERM");
    return term && *term && strcmp(term, "dumb") != 0 && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO);
}

/* Is this a terminal that is known and whose cursor can be moved? */
static bool is_addressable(void)
{
    int found = 0;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    const char *move = tigetstr("cup");
    bool can = move && move != (const char *)-1;
    del_curterm(cur_term);
    return can;
}

/* --- life --- */

static int take_signals(struct screen *s)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGWINCH);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &mask, &s->old_mask) < 0)
        return E_SYSTEM;
    s->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals >= 0)
        return 0;
    sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
    return E_SYSTEM;
}

/* One that still waits does what it always did as soon as it may: the terminal is whole by then. */
static void give_signals_back(struct screen *s)
{
    close(s->signals);
    sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

/* The whole process changes, for ncurses asks setlocale() and not the thread; nobody else runs. */
static int take_locale(struct screen *s)
{
    const char *old = setlocale(LC_CTYPE, NULL);
    s->old_locale = strdup(old ? old : "C");
    setlocale(LC_CTYPE, "C.UTF-8"); /* where there is none, names lose their accents, no more */
    return s->old_locale ? 0 : E_NOMEM;
}

static void give_locale_back(struct screen *s)
{
    if (s->old_locale)
        setlocale(LC_CTYPE, s->old_locale);
    free(s->old_locale);
}

static void choose_colours(void)
{
    start_color();
    use_default_colors();
    init_pair(SCREEN_HOT, COLOR_RED, -1);
    init_pair(SCREEN_WARM, COLOR_YELLOW, -1);
    init_pair(SCREEN_FOUND, COLOR_CYAN, -1);
}

static int start_curses(struct screen *s)
{
    use_tioctl(TRUE); /* the terminal knows its size; LINES and COLUMNS may be somebody else's */
    s->terminal = newterm(NULL, stdout, stdin);
    if (!s->terminal)
        return E_SYSTEM;
    set_term(s->terminal);
    set_escdelay(ESCAPE_MS);
    s->colour = s->colour && has_colors();
    if (s->colour)
        choose_colours();
    cbreak(); /* not raw: Ctrl-C and Ctrl-Z stay what they are */
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    return 0;
}

int screen_open(bool colour, struct screen **ret)
{
    if (!screen_is_possible() || !is_addressable())
        return E_SYSTEM;
    struct screen *s = calloc(1, sizeof *s);
    if (!s)
        return E_NOMEM;
    s->colour = colour;
    buf_init(&s->fit, LINE_BYTES_MAX);
    fflush(stdout);
    int r = tcgetattr(STDIN_FILENO, &s->old_modes) == 0 ? take_signals(s) : E_SYSTEM;
    if (r < 0) {
        free(s);
        return r;
    }
    r = take_locale(s);
    if (r == 0)
        r = start_curses(s);
    if (r < 0) {
        give_locale_back(s);
        give_signals_back(s);
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void screen_close(struct screen *s)
{
    if (!s)
        return;
    endwin();
    delscreen(s->terminal);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &s->old_modes);
    give_locale_back(s);
    give_signals_back(s);
    buf_release(&s->fit);
    free(s);
}

/* --- drawing --- */

void screen_size(const struct screen *s, size_t *ret_height, size_t *ret_width)
{
    (void)s;
    int height = getmaxy(stdscr), width = getmaxx(stdscr);
    *ret_height = height > 0 ? (size_t)height : 0;
    *ret_width = width > 0 ? (size_t)width : 0;
}

static attr_t attributes(const struct screen *s, enum screen_style style)
{
    switch (style) {
    case SCREEN_FAINT:
        return A_DIM;
    case SCREEN_STRONG:
        return A_BOLD;
    case SCREEN_CHOSEN:
        return A_REVERSE;
    case SCREEN_HOT:
    case SCREEN_WARM:
        return s->colour ? (attr_t)COLOR_PAIR(style) : A_NORMAL;
    case SCREEN_FOUND:
        return A_BOLD | (s->colour ? (attr_t)COLOR_PAIR(style) : A_UNDERLINE);
    default:
        return A_NORMAL;
    }
}

void screen_clear(struct screen *s)
{
    (void)s;
    erase();
    curs_set(0);
}

void screen_put(struct screen *s, size_t row, size_t column, enum screen_style style,
                const char *text, size_t len)
{
    size_t height, width;
    screen_size(s, &height, &width);
    if (row >= height || column >= width)
        return;
    buf_clear(&s->fit);
    view_text_fit(&s->fit, text, len, width - column, VIEW_CUT_RIGHT);
    attrset(attributes(s, style));
    mvaddnstr((int)row, (int)column, buf_cstr(&s->fit), (int)s->fit.len);
    attrset(A_NORMAL);
}

void screen_fill(struct screen *s, size_t row, size_t column, enum screen_style style)
{
    size_t height, width;
    screen_size(s, &height, &width);
    if (row < height && column < width)
        mvchgat((int)row, (int)column, -1, attributes(s, style), 0, NULL);
}

void screen_cursor(struct screen *s, size_t row, size_t column)
{
    (void)s;
    move((int)row, (int)column);
    curs_set(1);
}

void screen_show(struct screen *s)
{
    (void)s;
    refresh();
}

/* --- keys --- */

static int special_key(wint_t code)
{
    static const struct {
        int curses, ours;
    } keys[] = {
        {KEY_UP, SCREEN_KEY_UP},         {KEY_DOWN, SCREEN_KEY_DOWN},
        {KEY_LEFT, SCREEN_KEY_LEFT},     {KEY_RIGHT, SCREEN_KEY_RIGHT},
        {KEY_PPAGE, SCREEN_KEY_PAGE_UP}, {KEY_NPAGE, SCREEN_KEY_PAGE_DOWN},
        {KEY_HOME, SCREEN_KEY_HOME},     {KEY_END, SCREEN_KEY_END},
        {KEY_ENTER, SCREEN_KEY_ENTER},   {KEY_BACKSPACE, SCREEN_KEY_BACKSPACE},
        {KEY_RESIZE, SCREEN_RESIZED},
    };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if ((wint_t)keys[i].curses == code)
            return keys[i].ours;
    return SCREEN_KEY_NONE;
}

static int read_key(void)
{
    wint_t code = 0;
    int kind = get_wch(&code);
    if (kind == KEY_CODE_YES)
        return special_key(code);
    if (kind == ERR)
        return SCREEN_KEY_NONE;
    switch (code) {
    case '\r':
    case '\n':
        return SCREEN_KEY_ENTER;
    case '\b':
    case DELETE:
        return SCREEN_KEY_BACKSPACE;
    case ESCAPE:
        return SCREEN_KEY_ESCAPE;
    case CTRL_L:
        clearok(curscr, TRUE);
        return SCREEN_RESIZED;
    default:
        return (int)code;
    }
}

static int read_signal(struct screen *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return SCREEN_KEY_NONE;
    if (info.ssi_signo != SIGWINCH) {
        s->signal = (int)info.ssi_signo;
        return SCREEN_STOP;
    }
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    return SCREEN_RESIZED;
}

int screen_key(struct screen *s, int milliseconds)
{
    int waiting = read_key(); /* ncurses may have read ahead */
    if (waiting != SCREEN_KEY_NONE)
        return waiting;
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = s->signals, .events = POLLIN}};
    int n = poll(fds, ARRAY_LEN(fds), milliseconds);
    if (n < 0) /* stopped by Ctrl-Z and gone on: ncurses has drawn again, the size may be another */
        return errno == EINTR ? SCREEN_RESIZED : SCREEN_STOP;
    if (fds[1].revents)
        return read_signal(s);
    int key = n > 0 ? read_key() : SCREEN_KEY_NONE;
    bool is_gone = fds[0].revents & (POLLHUP | POLLERR | POLLNVAL);
    return key == SCREEN_KEY_NONE && is_gone ? SCREEN_STOP : key;
}

int screen_signal(const struct screen *s)
{
    return s->signal;
}

/* --- what browsers share --- */

int screen_page(struct screen *s, const char *const *text, size_t count)
{
    size_t top = 0, height, width;
    for (;;) {
        screen_size(s, &height, &width);
        screen_clear(s);
        for (size_t i = 0; i < height && top + i < count; i++)
            screen_put(s, i, 0, SCREEN_PLAIN, text[top + i], strlen(text[top + i]));
        screen_show(s);
        int key = screen_key(s, -1);
        if (key == SCREEN_KEY_DOWN || key == 'j')
            top += top + height < count;
        else if (key == SCREEN_KEY_UP || key == 'k')
            top -= top > 0;
        else if (key != SCREEN_RESIZED && key != SCREEN_KEY_NONE)
            return key;
    }
}

static void append_character(struct buf *out, uint32_t c)
{
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    buf_put_u8(out, (uint8_t)(first[more] | c >> (6 * more)));
    while (more--)
        buf_put_u8(out, (uint8_t)(0x80 | (c >> (6 * more) & 0x3f)));
}

void screen_edit(struct buf *line, int key)
{
    enum { CHARACTER_MAX = 4 };
    if (key == SCREEN_KEY_BACKSPACE) {
        while (line->len && (line->data[--line->len] & 0xc0) == 0x80)
            ;
    } else if (key >= ' ' && line->len + CHARACTER_MAX < line->max) {
        append_character(line, (uint32_t)key);
    }
}
