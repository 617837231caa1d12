/* SPDX-License-Identifier: MIT */
/*
 * The subcommands, each with the text of its --help, at most 80 columns wide. The completions read these texts: a
 * line for an option has two spaces, the option, a space and its value if it has one, and at least two more spaces
 * before the description.
 */
#include "cli.h"

/* clang-format off */
static const char lock_help[] =
    "usage: vigil lock NAME [OPTION...] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs the command while holding the lock NAME, which is created if it does not\n"
    "exist, and returns the command's exit status. Others wait in line for the lock\n"
    "until the command ends, for whatever reason. Signals are passed on to the\n"
    "command; before it starts they end the wait, and nothing is left in the line. On\n"
    "a terminal the place in the line is shown during the wait. If vigil is killed by\n"
    "SIGKILL, the command is killed as well; the next in line waits until processes\n"
    "that the command started have ended, too, and is told that the holder died.\n"
    "\n"
    "  --timeout T        wait for the lock at most this long: 250ms, 30s, 5m\n"
    "  --try              do not wait, as with --timeout 0: if the lock is not free,\n"
    "                     exit with 124 and print nothing\n"
    "  --fair             first come, first served, among all that use --fair;\n"
    "                     without it, a newcomer may take a just-released lock first\n"
    "  --shared           share the lock with others that use --shared (to read)\n"
    "  --wait-status      print the place in the line, even without a terminal\n"
    "  --on-owner-died continue|fail\n"
    "                     if the last holder was killed: warn, and run the command\n"
    "                     with VIGIL_OWNER_DIED=1 in its environment (the default);\n"
    "                     or fail, and so on for each holder until one continues\n"
    "  --json             events as lines of JSON on standard error\n"
    "\n"
    "Exit status: the command's; 128 plus the signal's number if it was killed; 124\n"
    "if the lock was not available in time; 125 if vigil failed, or was used wrongly;\n"
    "126 if the command cannot be run; 127 if there is no such command.\n"
    "\n"
    "Different locks may be nested; the same lock again is refused. The command is\n"
    "not run by a shell, unless it is one.\n"
    "\n"
    "Examples:\n"
    "  vigil lock deploy -- ./deploy.sh production\n"
    "  vigil lock notes --fair -- sh -c 'date >>notes'\n"
    "  vigil lock backup --try -- tar cf /backup/home.tar /home || echo busy\n";

static const char sem_help[] =
    "usage: vigil sem NAME --slots N [OPTION...] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs the command when fewer than N others run under the same NAME, and returns\n"
    "its exit status. Otherwise it waits in line for a slot. A slot is free again\n"
    "when its command ends or is killed. If vigil is killed, the slot is free when\n"
    "all processes that the command started have ended as well.\n"
    "\n"
    "  --slots N          how many may run at once: the same number for all uses of\n"
    "                     NAME; not needed if NAME exists already\n"
    "  --timeout T        wait for a slot at most this long: 250ms, 30s, 5m\n"
    "  --try              do not wait: see vigil lock\n"
    "  --wait-status      print the place in the line, even without a terminal\n"
    "  --json             events as lines of JSON on standard error\n"
    "\n"
    "Exit status: as for vigil lock.\n"
    "\n"
    "Example: four at a time, from any number of shells\n"
    "  for f in *.wav; do vigil sem encode --slots 4 -- opusenc \"$f\" \"$f.opus\" & done\n";

static const char create_help[] =
    "usage: vigil create NAME [OPTION...]\n"
    "\n"
    "Creates a segment: memory that processes share by its name, all zero at first.\n"
    "Its words can be read, changed, waited on and notified with vigil load, store,\n"
    "add, cas, wait and notify, and by programs that use the library. It exists until\n"
    "vigil rm removes it, or until the machine is switched off.\n"
    "\n"
    "  --length BYTES     its size: 64, 4k, 1M (default 4k)\n"
    "  --max-length BYTES how far programs may grow it (default: its length)\n"
    "  --waiters N        how many may wait in it at once (default 1024)\n"
    "  --members N        how many processes may have it open (default 64)\n"
    "  --mode MODE        its permissions, octal as for chmod (default 0600)\n"
    "  --json             print the result as JSON\n"
    "\n"
    "Exit status: 0; 3 if it cannot be created, or NAME exists; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil create ready && vigil wait ready 0\n";

static const char rm_help[] =
    "usage: vigil rm NAME... [OPTION...]\n"
    "\n"
    "Removes segments, including locks and semaphores. Processes that have a segment\n"
    "open keep it, but no other process can open it any more. So a segment that a\n"
    "process has open is refused.\n"
    "\n"
    "  -f, --force        remove segments that are in use; ignore missing ones\n"
    "  --json             print the result as JSON\n"
    "\n"
    "Exit status: 0; 3 if one of them cannot be removed (the others are); 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil rm deploy\n";

static const char ls_help[] =
    "usage: vigil ls [PATTERN] [OPTION...]\n"
    "\n"
    "Lists your segments, or those whose names match the pattern (* ? [...] as in the\n"
    "shell): the kind and size of each, how many processes have it open, and how many\n"
    "wait in it. A file that is not a valid segment is shown with the reason.\n"
    "\n"
    "  --names            print only the names\n"
    "  --json             print the list as JSON\n"
    "\n"
    "Exit status: 0, even if there are none; 3 if they cannot be listed; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil ls 'deploy*'\n";

static const char wait_help[] =
    "usage: vigil wait NAME[:INDEX] EXPECTED [OPTION...]\n"
    "       vigil wait NAME[:INDEX] --until VALUE [OPTION...]\n"
    "\n"
    "If a word of a segment is EXPECTED, waits until it is notified. Comparing and\n"
    "joining the line are one step, so no notification is missed. Prints ok,\n"
    "not-equal or timed-out, as Atomics.wait does in JavaScript.\n"
    "\n"
    "With --until, waits until the word is VALUE, and prints ok or timed-out. It\n"
    "looks whenever the word is notified: use --notify to write it.\n"
    "\n"
    "  --until VALUE      wait until the word is VALUE; at once if it is already\n"
    "  --timeout T        wait at most this long: 250ms, 30s, 5m (default: forever)\n"
    "  --type i32|i64     the type of the words, and so the step of INDEX\n"
    "                     (default i32)\n"
    "  --json             print the result as JSON\n"
    "\n"
    "INDEX counts words from 0, the default. Values are decimal or 0x...; negative\n"
    "values may also be written as their bit pattern.\n"
    "\n"
    "Exit status: 0 notified, or the word is VALUE; 1 the word is not EXPECTED; 2\n"
    "timed out; 3 failed; 64 usage.\n"
    "\n"
    "Example: a gate, created once; a shell waits at it, unless it is open already,\n"
    "and another opens it\n"
    "  vigil create gate\n"
    "  vigil wait gate --until 1 --timeout 5m && echo open\n"
    "  vigil store gate 1 --notify\n";

static const char notify_help[] =
    "usage: vigil notify NAME[:INDEX] [COUNT] [OPTION...]\n"
    "\n"
    "Wakes the first COUNT waiters at a word of a segment, or all of them, and prints\n"
    "how many it woke. Shells, threads and event loops wait in one line.\n"
    "\n"
    "  --type i32|i64     the type of the words, and so the step of INDEX\n"
    "                     (default i32)\n"
    "  --json             print the result as JSON\n"
    "\n"
    "Exit status: 0, even if there are no waiters; 3 failed; 64 usage.\n"
    "\n"
    "Example: wake one waiter at the third word\n"
    "  vigil create queue\n"
    "  vigil notify queue:2 1\n";

static const char load_help[] =
    "usage: vigil load NAME[:INDEX] [OPTION...]\n"
    "\n"
    "Prints a word of a segment.\n"
    "\n"
    "  --type i32|i64     the type of the words (default i32)\n"
    "  --json             print the result as JSON\n"
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil create counters\n"
    "  vigil load counters:7 --type i64\n";

static const char store_help[] =
    "usage: vigil store NAME[:INDEX] VALUE [OPTION...]\n"
    "\n"
    "Writes a word of a segment. It wakes no waiters without --notify.\n"
    "\n"
    "  --notify           then wake all waiters at the word; --json tells how many\n"
    "  --type i32|i64     the type of the words (default i32)\n"
    "  --json             print the result as JSON\n"
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil create ready\n"
    "  vigil store ready 1 --notify\n";

static const char add_help[] =
    "usage: vigil add NAME[:INDEX] DELTA [OPTION...]\n"
    "\n"
    "Adds to a word of a segment, in one atomic step, and prints its old value. The\n"
    "sum wraps around.\n"
    "\n"
    "  --notify           then wake all waiters at the word; --json tells how many\n"
    "  --type i32|i64     the type of the words (default i32)\n"
    "  --json             print the result as JSON\n"
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n"
    "\n"
    "Example: a new number for each call\n"
    "  vigil create tickets\n"
    "  ticket=$(vigil add tickets 1)\n";

static const char cas_help[] =
    "usage: vigil cas NAME[:INDEX] EXPECTED NEW [OPTION...]\n"
    "\n"
    "Compare and swap: writes NEW to a word of a segment if it is EXPECTED, in one\n"
    "atomic step, and prints its old value.\n"
    "\n"
    "  --notify           if it was written, then wake all waiters at the word;\n"
    "                     --json tells how many\n"
    "  --type i32|i64     the type of the words (default i32)\n"
    "  --json             print the result as JSON\n"
    "\n"
    "Exit status: 0 written; 1 the word was not EXPECTED; 3 failed; 64 usage.\n"
    "\n"
    "Example: only the first call runs the script\n"
    "  vigil create done\n"
    "  vigil cas done 0 1 >/dev/null && ./do-it-once.sh\n";

static const char show_help[] =
    "usage: vigil show NAME [OPTION...]\n"
    "       vigil show PID [OPTION...]\n"
    "\n"
    "Shows the state of a segment: the processes that have it open, the holders and\n"
    "how long they have held what, and each line of waiters in order, blocked threads\n"
    "and event loops. It takes no lock and delays no process.\n"
    "\n"
    "  --json             the same as JSON, with all times in nanoseconds\n"
    "\n"
    "For vigil lock, the place called lock is the lock itself, and the turnstile is\n"
    "where --fair waiters queue for it. For vigil sem, all wait for its slots. A\n"
    "mutex of a program is seen only while it has waiters, and FOR is ? for its\n"
    "holder: a mutex has no room for a time. \"its owner died\": the last holder was\n"
    "killed, and the lock has not been declared consistent yet.\n"
    "\n"
    "For a process that vigil run has started: the locks that its threads wait for,\n"
    "the holders, and threads that wait for each other. A number is a process, unless\n"
    "a segment has that name.\n"
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n"
    "\n"
    "Examples:\n"
    "  vigil show deploy\n"
    "  vigil show 4711\n";

static const char top_help[] =
    "usage: vigil top [OPTION...] [PATTERN...]\n"
    "       vigil top [OPTION...] PID...\n"
    "\n"
    "Shows the waiters in your segments, or in those whose names match, live and full\n"
    "screen, longest wait first: what each waits for, its place in the line, and the\n"
    "holder. For vigil lock, --fair waiters queue in the line called fair.\n"
    "\n"
    "Your processes under vigil run are shown as well: each waiting thread, its lock,\n"
    "where in the program it waits, and the thread that holds the lock. A PATTERN\n"
    "also matches their pids and the names of their programs.\n"
    "\n"
    "  --interval T       how often to look again: 250ms, 5s (default 1s)\n"
    "  --once             print once, as text, and end: for logs and pipes\n"
    "  --json             print everything once, as JSON\n"
    "\n"
    "Keys: q quit, f freeze, s sort by the next column, r reverse, / filter, Enter\n"
    "details of a row's segment or process, h help.\n"
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n"
    "\n"
    "Examples:\n"
    "  vigil top 'build*'\n"
    "  vigil top 4711\n"
    "  vigil top --once >>waiting.log\n";

static const char trace_help[] =
    "usage: vigil trace NAME -o FILE [OPTION...]\n"
    "       vigil trace PID -o FILE [OPTION...]\n"
    "\n"
    "Records the waits, grants, hand-overs and deaths in a segment, until Ctrl-C or\n"
    "for a given time, and writes them in the Chrome trace format: open FILE at\n"
    "https://ui.perfetto.dev or in chrome://tracing.\n"
    "\n"
    "For a process that vigil run has started, it records the threads: what they wait\n"
    "for, what they hold after a wait, and which thread hands it over to which. It\n"
    "ends with the process. A number is a process, unless a segment has that name.\n"
    "\n"
    "  -o, --output FILE  the trace (required without --svg); - is standard output\n"
    "  --svg FILE         a picture of the recording, as a timeline\n"
    "  --for T            how long: 10s, 1m (default: until Ctrl-C)\n"
    "  --json             print a summary as JSON\n"
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n"
    "\n"
    "Examples:\n"
    "  vigil trace 4711 --for 10s -o program.json\n"
    "  vigil trace deploy --for 10s -o deploy.json --svg deploy.svg\n";

static const char doctor_help[] =
    "usage: vigil doctor NAME... [OPTION...]\n"
    "       vigil doctor --all [OPTION...]\n"
    "\n"
    "Checks segments: finds damage, members that died, and processes that wait for\n"
    "each other in a circle. A circle may lead through several segments: all segments\n"
    "of this user are searched for that. A holder is assumed to wait for a vigil lock\n"
    "or sem that it runs, and these for their command: this is wrong if they run in\n"
    "the background.\n"
    "\n"
    "  --fix              remove dead members, clean up what they left, and repair\n"
    "                     the lines. A deadlock cannot be repaired: the report names\n"
    "                     a process to end\n"
    "  -a, --all          all segments of this user\n"
    "  --json             print the findings as JSON\n"
    "\n"
    "Exit status: 0 no findings; 1 findings, or findings left after --fix; 3 failed;\n"
    "64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil doctor deploy --fix\n";

static const char run_help[] =
    "usage: vigil run [OPTION...] -- PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs a program with Vigil's locks in place of those of pthreads: mutexes,\n"
    "conditions, read-write locks, semaphores, barriers and onces. The program need\n"
    "not be changed, and behaves as before, but can report which thread waits for\n"
    "what. vigil show PID prints the report, and so does the program itself, on\n"
    "standard error, when it gets SIGUSR2: each lock, its holder, the threads in line\n"
    "for it, and threads that wait for each other in a circle.\n"
    "\n"
    "  --profile          when the program ends, list the contended locks on standard\n"
    "                     error: how often and how long threads waited, and where;\n"
    "                     with --profile=FILE, write the list to that file\n"
    "  --check            report locks that are taken in an order that can deadlock\n"
    "  --signal NAME      report at that signal instead of USR2; none: at no signal\n"
    "  --json             write the profile as JSON\n"
    "\n"
    "Processes that the program starts are run in the same way; their profiles are in\n"
    "FILE.PID. A program that is linked statically, or is set-user-ID, keeps its own\n"
    "locks. See man vigil-run and man 7 vigil-pthreads.\n"
    "\n"
    "Exit status: the program's; 125 if vigil failed, or was used wrongly; 126 if the\n"
    "program cannot be run; 127 if there is no such program.\n"
    "\n"
    "Examples:\n"
    "  vigil run -- python3 server.py\n"
    "  vigil run --profile=locks.txt -- xz -T4 file\n";

static const char demo_help[] =
    "usage: vigil demo [OPTION...]\n"
    "\n"
    "Threads and event loops of two processes contend for one mutex; one process is\n"
    "killed with the lock held, and the others go on: live on the terminal, and\n"
    "checked.\n"
    "\n"
    "  --quick            run for one second instead of twelve\n"
    "  --svg FILE         draw a picture; otherwise no file is written\n"
    "  --json             print the results as JSON, instead of the show\n"
    "\n"
    "Exit status: 0 all was right; 1 something was wrong; 3 failed; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil demo --svg demo.svg\n";

static const char bench_help[] =
    "usage: vigil bench [OPTION...]\n"
    "\n"
    "Measures the library on this machine, and the alternatives beside it, in turn.\n"
    "It takes some minutes, during which nothing else should run.\n"
    "\n"
    "  --json             print the figures as JSON, the tables on standard error\n"
    "  --svg FILE         measure and draw how cost grows with the number of waiters\n"
    "  --markdown FILE    write the figures as a page of Markdown, with the targets\n"
    "  --only ROW,...     only these rows; an unknown row prints the list of all\n"
    "  --rounds N         at most N rounds of each row, 1 to 64\n"
    "  --quick            a hundredth of the work, once, to see that it runs; the\n"
    "                     figures mean nothing\n"
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil bench --only mutex_uncontended --json >bench.json\n";
/* clang-format on */

const struct cli_command cli_commands[] = {
    {"lock", cli_lock, "run a command while holding a lock", lock_help, true, NULL, false},
    {"sem", cli_sem, "run at most N commands at once", sem_help, true, NULL, false},
    {"create", cli_create, "create a segment of shared memory", create_help, false, NULL, false},
    {"rm", cli_rm, "remove segments, locks and semaphores", rm_help, false, NULL, false},
    {"ls", cli_ls, "list segments, locks and semaphores", ls_help, false, NULL, false},
    {"wait", cli_wait, "wait at a word until it is notified, or has a value", wait_help, false, NULL, false},
    {"notify", cli_notify, "wake the waiters at a word", notify_help, false, NULL, false},
    {"load", cli_load, "print a word", load_help, false, NULL, false},
    {"store", cli_store, "write a word", store_help, false, NULL, false},
    {"add", cli_add, "add to a word", add_help, false, NULL, false},
    {"cas", cli_cas, "compare and swap a word", cas_help, false, NULL, false},
    {"show", cli_show, "show the holders and waiters of a segment or process", show_help, false, NULL, false},
    {"top", NULL, "show all waiters, live and full screen", top_help, false,
     "it needs ncurses; install it (apt install libncurses-dev) and build vigil again", false},
    {"trace", cli_trace, "record what happens, for Perfetto or as a picture", trace_help, false, NULL, false},
    {"doctor", cli_doctor, "find damage and deadlocks, and repair damage", doctor_help, false, NULL, false},
    {"run", cli_run, "run a program on these locks, and see its threads wait", run_help, true, NULL, true},
    {"demo", NULL, "watch a contest for a lock", demo_help, false, "make demo, in vigil's sources, builds and runs it",
     false},
    {"bench", NULL, "measure the library", bench_help, false, "make bench, in vigil's sources, builds and runs it",
     false},
    {0}};
