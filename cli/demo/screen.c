/* SPDX-License-Identifier: MIT */
/*
 * The contest on the terminal: a lane for each contestant, which fills from left to right as time passes. If stdout
 * is not a terminal, the lanes are printed once, when the act is over.
 */
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../colours.h"
#include "demo.h"

#define LANE_MAX 100
#define FRAME_NS (20 * MILLISECOND)
#define LEVELS   8

/* What happened in the time that one character of a lane stands for. */
struct cell {
    bool waiting, holding, dead;
    uint32_t endings[ENDINGS];
};

static struct cell lanes[CONTESTANTS][LANE_MAX];
static struct glimpse now[CONTESTANTS];
static int64_t looked_ns; /* time of the last look, from the beginning of the act */
static int lane_width;
static bool redraws, colours, utf8;

static const char *demo_paint(const char *colour) {
    return colours ? colour : "";
}

static void demo_put(const char *colour, const char *glyph, const char *ascii) {
    printf("%s%s%s", demo_paint(colour), utf8 ? glyph : ascii, demo_paint(PLAIN));
}

static const char *colour_of(int contestant) {
    return is_loop(contestant) ? CYAN : YELLOW;
}

const char *grouped(uint64_t number) {
    static char texts[4][32];
    static int next;
    char *end = texts[next++ % 4] + 31;
    *end = 0;
    for (int digits = 0; digits == 0 || number; digits++, number /= 10) {
        if (digits && digits % 3 == 0) *--end = ',';
        *--end = (char)('0' + number % 10);
    }
    return end;
}

/* At most 7 columns: 840 us, 12.3 ms, 251 ms. */
static const char *duration(int64_t ns) {
    static char texts[4][32];
    static int next;
    char *text = texts[next++ % 4];
    double ms = (double)ns / 1e6;
    if (ms < 1) snprintf(text, 32, "%.0f us", ms * 1e3);
    else snprintf(text, 32, ms < 100 ? "%.1f ms" : "%.0f ms", ms);
    return text;
}

int in_lane(const struct act *act, int lane) {
    static const int by_process[CONTESTANTS] = {0, 1, 4, 2, 3, 5};
    return act->two_processes ? by_process[lane] : lane;
}

/* A frame may be half written: reset the colours. Then the signal ends the process as usual. */
static void on_signal(int number) {
    static const char calm_down[] = "\033[0m\n";
    ssize_t written = redraws ? write(STDOUT_FILENO, calm_down, sizeof calm_down - 1) : 0;
    (void)written;
    raise(number);
}

static void leave_tidily_on(int number) {
    struct sigaction before, action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(number, &action, NULL);
}

void screen_open(void) {
    struct winsize size = {0};
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    setlocale(LC_CTYPE, "");
    utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    redraws = isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    colours = redraws && !(no_colour && *no_colour);
    if (!redraws || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 100;
    lane_width = size.ws_col - 39;
    if (lane_width < 20) lane_width = 20;
    if (lane_width > LANE_MAX) lane_width = LANE_MAX;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* a frame at a time */
    leave_tidily_on(SIGINT);
    leave_tidily_on(SIGTERM);
    leave_tidily_on(SIGHUP);
    leave_tidily_on(SIGQUIT);

    printf("%sVigil%s: one mutex, %sfour threads that block%s, %stwo event loops that must not%s.\n", demo_paint(BOLD),
           demo_paint(PLAIN), demo_paint(YELLOW), demo_paint(PLAIN), demo_paint(CYAN), demo_paint(PLAIN));
    printf("They wait for it in one line. Some have a deadline, some cancel their request.\n");
    demo_put("", "█", "#");
    printf(" holds it   ");
    demo_put(FAINT, "─", "-");
    printf(" waits   ");
    demo_put(RED, "×", "x");
    printf(" timed out   ");
    demo_put(MAGENTA, "○", "o");
    printf(" cancelled   ");
    demo_put(BOLD, "╳", "X");
    printf(" killed\n\n");
}

/* Lanes. */

/* Adds what has happened since the last look to the cell of that time. */
static void demo_look(const struct act *act) {
    int64_t place = looked_ns * lane_width / act->duration_ns;
    looked_ns = vigil_now_ns() - act->began_ns;
    if (place >= lane_width) place = lane_width - 1;
    for (int i = 0; i < CONTESTANTS; i++) {
        struct cell *cell = &lanes[i][place];
        struct glimpse before = now[i];
        contest_glimpse(i, &now[i]);
        cell->waiting |= before.waiting;
        cell->holding |= before.holding;
        cell->dead |= now[i].dead && !before.dead;
        for (int ending = 0; ending < ENDINGS; ending++)
            cell->endings[ending] += now[i].endings[ending] - before.endings[ending];
    }
}

/* In slow motion: the state of the contestant. Of several, the rarer one is shown. */
static void put_state(int contestant, const struct cell *cell) {
    if (cell->dead) demo_put(BOLD, "╳", "X");
    else if (cell->endings[TIMED_OUT]) demo_put(RED, "×", "x");
    else if (cell->endings[CANCELLED]) demo_put(MAGENTA, "○", "o");
    else if (cell->holding) demo_put(colour_of(contestant), "█", "#");
    else if (cell->waiting) demo_put(FAINT, "─", "-");
    else demo_put("", " ", " ");
}

/* At full speed: how often it was served, relative to the most that any contestant was. */
static void put_level(int contestant, const struct cell *cell, uint32_t most) {
    static const char *const glyphs[LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const digits[LEVELS] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    uint32_t served = cell->endings[GRANTED];
    uint32_t level = (uint32_t)((uint64_t)served * LEVELS / ((uint64_t)most + 1));
    if (served) demo_put(colour_of(contestant), glyphs[level], digits[level]);
    else demo_put("", " ", " ");
}

static uint32_t most_served(void) {
    uint32_t most = 0;
    for (int i = 0; i < CONTESTANTS; i++) {
        for (int place = 0; place < lane_width; place++) {
            if (lanes[i][place].endings[GRANTED] > most) most = lanes[i][place].endings[GRANTED];
        }
    }
    return most;
}

static void end_line(void) {
    printf(redraws ? "\033[K\n" : "\n");
}

static void print_lane(const struct act *act, int contestant, uint32_t most, bool is_over) {
    const struct glimpse *one = &now[contestant];
    const char *process = !act->two_processes ? "" : is_in_second(act, contestant) ? "P2" : "P1";
    const char *doing = one->dead ? "killed" : is_over ? "" : one->holding ? "holds it" : one->waiting ? "waits" : "";
    printf("%-2s %s%-8s%s ", process, demo_paint(colour_of(contestant)), contestant_names[contestant],
           demo_paint(PLAIN));
    for (int place = 0; place < lane_width; place++) {
        const struct cell *cell = &lanes[contestant][place];
        if (act->slow) put_state(contestant, cell);
        else put_level(contestant, cell, most);
    }
    printf(" %7s served", grouped(one->endings[GRANTED]));
    if (act->slow && *doing) printf("  %s%s%s", demo_paint(FAINT), doing, demo_paint(PLAIN));
    end_line();
}

/* The waiters, in the order in which they called. */
static void demo_print_line(void) {
    int order[CONTESTANTS], length = 0;
    for (int i = 0; i < CONTESTANTS; i++) {
        if (!now[i].waiting) continue;
        int place = length++;
        for (; place > 0 && now[order[place - 1]].called_ns > now[i].called_ns; place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
    printf("   in line  ");
    for (int i = 0; i < length; i++) {
        const char *letter = strrchr(contestant_names[order[i]], ' ') + 1;
        printf(is_loop(order[i]) ? "%s(%s)%s " : "%s[%s]%s ", demo_paint(colour_of(order[i])), letter,
               demo_paint(PLAIN));
    }
}

static void print_sum(void) {
    uint32_t sums[ENDINGS] = {0};
    for (int i = 0; i < CONTESTANTS; i++) {
        for (int ending = 0; ending < ENDINGS; ending++) sums[ending] += now[i].endings[ending];
    }
    printf("            %s served, %s timed out, ", grouped(sums[GRANTED]), grouped(sums[TIMED_OUT]));
    printf("%s cancelled, %s ticks of loop 1", grouped(sums[CANCELLED]), grouped(contest_ticks()));
}

/* The state of the second process. */
static void print_news(const struct act *act) {
    int64_t killed_ns = __atomic_load_n(&act->killed_ns, __ATOMIC_ACQUIRE);
    int64_t heir_ns = __atomic_load_n(&act->heir_ns, __ATOMIC_ACQUIRE);
    printf("            ");
    if (!killed_ns) printf("P1 and P2 are two processes, in one line");
    else if (!heir_ns) printf("%sP2 is killed, with the lock held%s", demo_paint(RED), demo_paint(PLAIN));
    else
        printf("%sthe owner died%s: %s is told after %s, the line goes on", demo_paint(RED), demo_paint(PLAIN),
               contestant_names[act->heir], duration(heir_ns - killed_ns));
    end_line();
}

static int frame_lines(const struct act *act) {
    return CONTESTANTS + 1 + act->two_processes;
}

static void print_frame(const struct act *act, bool is_over) {
    uint32_t most = most_served();
    for (int lane = 0; lane < CONTESTANTS; lane++) print_lane(act, in_lane(act, lane), most, is_over);
    if (act->two_processes) print_news(act);
    if (is_over || !act->slow) print_sum();
    else demo_print_line();
    end_line();
    fflush(stdout);
}

void screen_show(const struct act *act) {
    int64_t cell_ns = act->duration_ns / lane_width;
    struct timespec a_frame = {.tv_nsec = cell_ns / 2 < FRAME_NS ? cell_ns / 2 : FRAME_NS};
    memset(lanes, 0, sizeof lanes);
    memset(now, 0, sizeof now);
    looked_ns = 0;
    printf("%s%s%s  %s%s%s\n", demo_paint(BOLD), act->title, demo_paint(PLAIN), demo_paint(FAINT), act->explanation,
           demo_paint(PLAIN));
    while (vigil_now_ns() < act->began_ns + act->duration_ns) {
        demo_look(act);
        if (redraws) {
            print_frame(act, false);
            printf("\033[%dA", frame_lines(act));
        }
        nanosleep(&a_frame, NULL);
    }
}

void screen_show_end(const struct act *act) {
    demo_look(act);
    print_frame(act, true);
    printf("\n");
}

/* The table. */

static void demo_print_row(const struct act *acts, int count, int contestant) {
    printf("  %s%-11s%s", demo_paint(colour_of(contestant)), contestant_names[contestant], demo_paint(PLAIN));
    for (int i = 0; i < count; i++) {
        const struct record *record = &acts[i].records[contestant];
        printf("%7s %8s", grouped(record->endings[GRANTED]), duration(record->longest_wait_ns));
    }
    printf("\n");
}

static void print_sums(const struct act *acts, int count, const char *title, enum ending ending) {
    printf("  %-11s", title);
    for (int i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (int j = 0; j < CONTESTANTS; j++) sum += acts[i].records[j].endings[ending];
        printf("%7s %8s", grouped(sum), "");
    }
    printf("\n");
}

void screen_table(const struct act *acts, int count) {
    printf("%s%-13s", demo_paint(BOLD), "");
    for (int i = 0; i < count; i++) printf("%16s", acts[i].column);
    printf("%s\n%s%-13s", demo_paint(PLAIN), demo_paint(FAINT), "");
    for (int i = 0; i < count; i++) printf("%7s %8s", "served", "max wait");
    printf("%s\n", demo_paint(PLAIN));
    for (int i = 0; i < CONTESTANTS; i++) demo_print_row(acts, count, i);
    print_sums(acts, count, "all", GRANTED);
    print_sums(acts, count, "timed out", TIMED_OUT);
    print_sums(acts, count, "cancelled", CANCELLED);
    print_sums(acts, count, "killed", KILLED);
    printf("  %-11s", "out of turn");
    for (int i = 0; i < count; i++) printf("%7s %8s", grouped(acts[i].out_of_turn), "");
    printf("\n\n");
}

/* The verdict. */

static struct act add_up(const struct act *acts, int count) {
    struct act all = {0};
    for (int i = 0; i < count; i++) {
        const struct act *act = &acts[i];
        all.granted += act->granted;
        all.counted += act->counted;
        all.intrusions += act->intrusions + act->overlaps;
        all.failures += act->failures;
        all.not_once += act->not_once;
        all.ticks += act->ticks;
        all.waiting_ticks += act->waiting_ticks;
        all.no_tick |= act->no_tick;
        all.wrong_death |= act->wrong_death;
        if (act->latest_tick_ns > all.latest_tick_ns) all.latest_tick_ns = act->latest_tick_ns;
        if (!act->fair) continue;
        all.turns += act->turns;
        all.out_of_turn += act->out_of_turn;
        all.turns_lost += act->turns_lost;
    }
    return all;
}

static void demo_say(bool right) {
    if (right) demo_put(GREEN, "✓ ", "ok: ");
    else demo_put(RED, "✗ ", "WRONG: ");
}

static void print_death(const struct act *act) {
    if (!act->two_processes) return;
    if (act->lost) printf("the second process ended by itself, or never had the lock\n");
    else if (!act->heir_ns) printf("killed with the lock held, and no waiter was told\n");
    else
        printf("killed with the lock held: the next had it in %s, was told; %s grants since\n",
               duration(act->heir_ns - act->killed_ns), grouped(act->after_death - 1));
}

void screen_verdict(const struct act *acts, int count) {
    struct act all = add_up(acts, count);
    demo_say(!all.intrusions && all.counted == all.granted);
    printf("%s times in the lock, never two at a time\n", grouped(all.granted));
    demo_say(!all.not_once && !all.failures);
    printf("every request ended exactly once: granted, timed out, cancelled or killed\n");
    demo_say(!all.out_of_turn);
    printf("fair is first come, first served: of %s turns %s were out of turn\n", grouped(all.turns),
           all.out_of_turn ? grouped(all.out_of_turn) : "none");
    if (all.turns_lost)
        printf("  (%s waiters did not take their turn within a second, and lost it)\n", grouped(all.turns_lost));
    demo_say(!all.wrong_death);
    for (int i = 0; i < count; i++) print_death(&acts[i]);
    demo_say(!all.no_tick);
    printf("loop 1 ticked %s times, %s of them while waiting; the latest by %s\n", grouped(all.ticks),
           grouped(all.waiting_ticks), duration(all.latest_tick_ns));
}
