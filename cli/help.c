/* SPDX-License-Identifier: MIT */
/*
 * The subcommands, each with the text of its --help, at most 80 columns wide. The completions read it as well: a line
 * that tells of an option has two spaces, the option, a space and its value if it has one, and at least two more spaces
 * before what it does.
 */
#include "cli.h"

/* clang-format off */
static const char lock_help[] =
    "usage: vigil lock NAME [OPTION...] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs the command while it holds the lock NAME, which is made if there is none,\n"
    "and answers the command's exit status. Others who want the lock stand in line\n"
    "until the command ends, however it ends. Signals are passed on to the command;\n"
    "before it begins they end the waiting, and leave no trace in the line. On a\n"
    "terminal the place in the line is shown meanwhile. SIGKILL of vigil is the death\n"
    "of the command as well; the next one in line waits until what that has started\n"
    "is gone, too, and is told.\n"
    "\n"
    "  --timeout T        wait for the lock that long at most: 250ms, 30s, 5m\n"
    "  --try              do not wait, as with --timeout 0: if it is not free, exit\n"
    "                     with 124, and say nothing\n"
    "  --fair             first come, first served, among all who say so; without\n"
    "                     it one who comes at the right moment may be faster\n"
    "  --shared           together with others who say so (to read)\n"
    "  --wait-status      tell the place in the line, also where it is no terminal\n"
    "  --on-owner-died continue|fail\n"
    "                     when the last holder was killed: warn, and run the command\n"
    "                     with VIGIL_OWNER_DIED=1 in its environment (the default);\n"
    "                     or fail, as all will until one continues\n"
    "  --json             events as lines of JSON on standard error\n"
    "\n"
    "Exit status: the command's; 128 and the signal's number if it was killed; 124 if\n"
    "the lock was not to be had in time; 125 if vigil failed, or was called wrongly;\n"
    "126 if the command cannot be run; 127 if there is no such command.\n"
    "\n"
    "Locks may be nested, but not one in itself: that is refused. No shell takes part\n"
    "unless it is the command.\n"
    "\n"
    "Examples:\n"
    "  vigil lock deploy -- ./deploy.sh production\n"
    "  vigil lock notes --fair -- sh -c 'date >>notes'\n"
    "  vigil lock backup --try -- tar cf /backup/home.tar /home || echo busy\n";

static const char sem_help[] =
    "usage: vigil sem NAME --slots N [OPTION...] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs the command when fewer than N others run under the same NAME, and answers\n"
    "its exit status. Otherwise it stands in line until it has a slot. A slot is free\n"
    "again when its command ends, also if that is killed; if vigil is, when all that\n"
    "the command has started is gone as well.\n"
    "\n"
    "  --slots N          how many may run at once: the same for all of one NAME, and\n"
    "                     not needed if there is that already\n"
    "  --timeout T        wait for a slot that long at most: 250ms, 30s, 5m\n"
    "  --try              do not wait: see vigil lock\n"
    "  --wait-status      tell the place in the line, also where it is no terminal\n"
    "  --json             events as lines of JSON on standard error\n"
    "\n"
    "Exit status: as of vigil lock.\n"
    "\n"
    "Example: four at a time, whoever starts them\n"
    "  for f in *.wav; do vigil sem encode --slots 4 -- opusenc \"$f\" \"$f.opus\" & done\n";

static const char create_help[] =
    "usage: vigil create NAME [OPTION...]\n"
    "\n"
    "Makes a segment: memory that processes share by its name, all zero at first. Its\n"
    "words can be read, changed, waited on and notified with vigil load, store, add,\n"
    "cas, wait and notify, and by programs that use the library. It stays until vigil\n"
    "rm, or until the machine is switched off.\n"
    "\n"
    "  --length BYTES     how large it is: 64, 4k, 1M (default 4k)\n"
    "  --max-length BYTES how large programs may make it (default: its length)\n"
    "  --waiters N        how many may wait in it at once (default 1024)\n"
    "  --members N        how many processes may have it open (default 64)\n"
    "  --mode MODE        its permissions, octal as for chmod (default 0600)\n"
    "  --json             the answer as JSON\n"
    "\n"
    "Exit status: 0; 3 if it cannot be made, also if NAME is taken; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil create ready && vigil wait ready 0\n";

static const char rm_help[] =
    "usage: vigil rm NAME... [OPTION...]\n"
    "\n"
    "Removes segments, and so locks and semaphores as well. Processes that have one\n"
    "open keep it, but nobody else finds it any more: hence one that is open in a\n"
    "living process is refused.\n"
    "\n"
    "  -f, --force        also one that is in use; and one that is not there is fine\n"
    "  --json             the answer as JSON\n"
    "\n"
    "Exit status: 0; 3 if one of them cannot be removed (the others are); 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil rm deploy\n";

static const char ls_help[] =
    "usage: vigil ls [PATTERN] [OPTION...]\n"
    "\n"
    "Lists your segments, or those whose names match the pattern (* ? [...] as in the\n"
    "shell): what each is, how large, how many processes have it open, and how many\n"
    "wait in it. A file that is no proper segment is shown with what is wrong.\n"
    "\n"
    "  --names            the names alone\n"
    "  --json             the list as JSON\n"
    "\n"
    "Exit status: 0, also if there are none; 3 if they cannot be listed; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil ls 'deploy*'\n";

static const char wait_help[] =
    "usage: vigil wait NAME[:INDEX] EXPECTED [OPTION...]\n"
    "\n"
    "Waits at a word of a segment as long as it is EXPECTED, until it is notified:\n"
    "comparing and joining the line are one step, so no notification is missed.\n"
    "Prints ok, not-equal or timed-out, as Atomics.wait does in JavaScript.\n"
    "\n"
    "  --timeout T        that long at most: 250ms, 30s, 5m (default: forever)\n"
    "  --type i32|i64     the size of the words, and of the steps of INDEX\n"
    "                     (default i32)\n"
    "  --json             the answer as JSON\n"
    "\n"
    "INDEX counts words from 0, the default. Values are decimal or 0x...; negative\n"
    "ones may be written as such or as their bit pattern.\n"
    "\n"
    "Exit status: 0 notified; 1 the word is not EXPECTED; 2 timed out; 3 it cannot be\n"
    "done; 64 usage.\n"
    "\n"
    "Example: a gate, made once; one waits at it, also when it is open already, and\n"
    "one opens it\n"
    "  vigil create gate\n"
    "  vigil wait gate 0 --timeout 5m; [ $? -le 1 ] && echo open\n"
    "  vigil store gate 1; vigil notify gate\n";

static const char notify_help[] =
    "usage: vigil notify NAME[:INDEX] [COUNT] [OPTION...]\n"
    "\n"
    "Wakes the first COUNT who wait at a word of a segment, or all of them, and\n"
    "prints how many there were: shells, threads and event loops stand in one line.\n"
    "\n"
    "  --type i32|i64     the size of the steps of INDEX (default i32)\n"
    "  --json             the answer as JSON\n"
    "\n"
    "Exit status: 0, also if nobody waits; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Example: wake one of those who wait at the third word\n"
    "  vigil create queue\n"
    "  vigil notify queue:2 1\n";

static const char load_help[] =
    "usage: vigil load NAME[:INDEX] [OPTION...]\n"
    "\n"
    "Prints a word of a segment.\n"
    "\n"
    "  --type i32|i64     the size of the words (default i32)\n"
    "  --json             the answer as JSON\n"
    "\n"
    "Exit status: 0; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil create counters\n"
    "  vigil load counters:7 --type i64\n";

static const char store_help[] =
    "usage: vigil store NAME[:INDEX] VALUE [OPTION...]\n"
    "\n"
    "Writes a word of a segment. It wakes nobody: that is what vigil notify does.\n"
    "\n"
    "  --type i32|i64     the size of the words (default i32)\n"
    "  --json             the answer as JSON\n"
    "\n"
    "Exit status: 0; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil create ready\n"
    "  vigil store ready 1 && vigil notify ready\n";

static const char add_help[] =
    "usage: vigil add NAME[:INDEX] DELTA [OPTION...]\n"
    "\n"
    "Adds to a word of a segment, in one step, and prints what it was before. Beyond\n"
    "the largest value comes the smallest.\n"
    "\n"
    "  --type i32|i64     the size of the words (default i32)\n"
    "  --json             the answer as JSON\n"
    "\n"
    "Exit status: 0; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Example: a number for everybody who asks\n"
    "  vigil create tickets\n"
    "  ticket=$(vigil add tickets 1)\n";

static const char cas_help[] =
    "usage: vigil cas NAME[:INDEX] EXPECTED NEW [OPTION...]\n"
    "\n"
    "Compare and swap: writes NEW to a word of a segment if it is EXPECTED, in one\n"
    "step, and prints what it was before.\n"
    "\n"
    "  --type i32|i64     the size of the words (default i32)\n"
    "  --json             the answer as JSON\n"
    "\n"
    "Exit status: 0 written; 1 it was not EXPECTED; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Example: only the first one does it\n"
    "  vigil create done\n"
    "  vigil cas done 0 1 >/dev/null && ./do-it-once.sh\n";

static const char show_help[] =
    "usage: vigil show NAME [OPTION...]\n"
    "       vigil show PID [OPTION...]\n"
    "\n"
    "Shows what is going on in a segment: the processes that have it open, who holds\n"
    "what since when, and each line of waiters in order, blocked threads and event\n"
    "loops. Looking takes no lock and keeps nobody waiting.\n"
    "\n"
    "  --json             the same as JSON, with all times in nanoseconds\n"
    "\n"
    "Of vigil lock, the place called lock is what is held, and the turnstile is where\n"
    "those with --fair queue for it. Of vigil sem, all wait for its slots. A mutex of\n"
    "a program is seen only while somebody waits for it, and FOR is ? for its holder:\n"
    "there is no room in it for a time. \"its owner died\": the last holder was killed,\n"
    "and nobody has made good what that may have left half done.\n"
    "\n"
    "Of a process that vigil run has started: its locks for which threads wait, their\n"
    "holders, and threads that wait for each other. A number is a process unless it\n"
    "is the name of a segment.\n"
    "\n"
    "Exit status: 0; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Examples:\n"
    "  vigil show deploy\n"
    "  vigil show 4711\n";

static const char top_help[] =
    "usage: vigil top [OPTION...] [PATTERN...]\n"
    "       vigil top [OPTION...] PID...\n"
    "\n"
    "Shows who waits in your segments, or in those whose names match, live and full\n"
    "screen, longest wait first: for what, where in the line, and who holds it. Of\n"
    "vigil lock, those with --fair queue in the line called fair.\n"
    "\n"
    "Your processes under vigil run are shown beside the segments: each thread that\n"
    "waits, for which lock, where in the program, and the thread that holds it. A\n"
    "PATTERN is also for their numbers and the names of their programs.\n"
    "\n"
    "  --interval T       how often to look again: 250ms, 5s (default 1s)\n"
    "  --once             print it once, as text, and end: for logs and pipes\n"
    "  --json             print everything once, as JSON\n"
    "\n"
    "Keys: q quit, f freeze, s sort by the next column, r reverse, / filter, Enter\n"
    "everything about a row's segment or process, h help.\n"
    "\n"
    "Exit status: 0; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Examples:\n"
    "  vigil top 'build*'\n"
    "  vigil top 4711\n"
    "  vigil top --once >>waiting.log\n";

static const char trace_help[] =
    "usage: vigil trace NAME -o FILE [OPTION...]\n"
    "       vigil trace PID -o FILE [OPTION...]\n"
    "\n"
    "Records what happens in a segment, waits, grants, hand-overs and deaths, until\n"
    "Ctrl-C or for a while, and writes it in the Chrome trace format: open FILE at\n"
    "https://ui.perfetto.dev or in chrome://tracing.\n"
    "\n"
    "Of a process that vigil run has started, it records its threads: what they wait\n"
    "for, what they hold after they have waited, and which thread hands it over to\n"
    "which. It ends with the process. A number is a process unless it is the name of\n"
    "a segment.\n"
    "\n"
    "  -o, --output FILE  where to (needed, unless there is --svg); - is stdout\n"
    "  --svg FILE         a picture of it, drawn as a timeline\n"
    "  --for T            how long: 10s, 1m (default: until Ctrl-C)\n"
    "  --json             what was recorded, in numbers, as JSON\n"
    "\n"
    "Exit status: 0; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Examples:\n"
    "  vigil trace 4711 --for 10s -o program.json\n"
    "  vigil trace deploy --for 10s -o deploy.json --svg deploy.svg\n";

static const char doctor_help[] =
    "usage: vigil doctor NAME... [OPTION...]\n"
    "       vigil doctor --all [OPTION...]\n"
    "\n"
    "Checks segments: that they are whole, that their lines are in order, who died in\n"
    "them, and which processes wait for each other in a circle. A circle may lead\n"
    "through several segments; all of this user's are looked at for that. Whoever\n"
    "holds something is taken to wait for a vigil lock or sem that it runs, and these\n"
    "for their command: not so if it was left in the background.\n"
    "\n"
    "  --fix              strike off the dead, clear what they left, mend the lines.\n"
    "                     A deadlock cannot be mended: it is said whom one could end\n"
    "  -a, --all          all segments of this user\n"
    "  --json             the findings as JSON\n"
    "\n"
    "Exit status: 0 all is well; 1 something was found, or is left; 3 cannot be done;\n"
    "64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil doctor deploy --fix\n";

static const char run_help[] =
    "usage: vigil run [OPTION...] -- PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs a program with Vigil's locks in place of those of pthreads: its mutexes,\n"
    "conditions, read-write locks, semaphores, barriers and onces. It need not be\n"
    "changed, and behaves as before; but it can be asked who waits for what. vigil\n"
    "show PID prints that, and so does the program itself, on standard error, when it\n"
    "gets SIGUSR2: each lock, its holder, the threads in line for it, and threads\n"
    "that wait for each other in a circle.\n"
    "\n"
    "  --profile          when the program ends, list the contended locks on standard\n"
    "                     error: how often and how long threads waited, and where;\n"
    "                     with --profile=FILE, into that file\n"
    "  --check            report locks that are taken in an order that can deadlock\n"
    "  --signal NAME      report at that signal instead of USR2; none: at no signal\n"
    "  --json             the profile as JSON\n"
    "\n"
    "Processes that the program starts are run in the same way; their profiles are in\n"
    "FILE.PID. A program that is linked statically, or is set-user-ID, keeps its own\n"
    "locks. man vigil-run and man 7 vigil-pthreads tell more.\n"
    "\n"
    "Exit status: the program's; 125 if vigil failed, or was called wrongly; 126 if\n"
    "the program cannot be run; 127 if there is no such program.\n"
    "\n"
    "Examples:\n"
    "  vigil run -- python3 server.py\n"
    "  vigil run --profile=locks.txt -- xz -T4 file\n";

static const char demo_help[] =
    "usage: vigil demo [OPTION...]\n"
    "\n"
    "Threads, event loops and a second process contend for one mutex, that process is\n"
    "killed with the lock held, and the line goes on: live on the terminal, and\n"
    "checked.\n"
    "\n"
    "  --quick            in one second instead of twelve\n"
    "  --svg FILE         draw a picture of it; otherwise no file is written\n"
    "  --json             instead of the show, what came of it as JSON\n"
    "\n"
    "Exit status: 0 all was right; 1 something was wrong; 3 cannot be done; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil demo --svg demo.svg\n";

static const char bench_help[] =
    "usage: vigil bench [OPTION...]\n"
    "\n"
    "Measures the library on this machine, next to what else there is, each in turn:\n"
    "some minutes. Let nothing else run meanwhile.\n"
    "\n"
    "  --json             the figures as JSON; the tables go to standard error\n"
    "  --svg FILE         measure and draw how cost grows with the number of waiters\n"
    "  --markdown FILE    the figures as a page of Markdown, with the targets\n"
    "  --only ROW,...     these rows only; one that does not exist lists them all\n"
    "  --rounds N         at most N rounds of each row, 1 to 64\n"
    "  --quick            a hundredth of the work, once: to see that it runs; the\n"
    "                     figures mean nothing\n"
    "\n"
    "Exit status: 0; 3 it cannot be done; 64 usage.\n"
    "\n"
    "Example:\n"
    "  vigil bench --only mutex_uncontended --json >bench.json\n";
/* clang-format on */

const struct cli_command cli_commands[] = {
    {"lock", cli_lock, "run a command while holding a lock", lock_help, true, NULL, false},
    {"sem", cli_sem, "run at most so many commands at once", sem_help, true, NULL, false},
    {"create", cli_create, "make a segment of shared memory", create_help, false, NULL, false},
    {"rm", cli_rm, "remove segments, locks and semaphores", rm_help, false, NULL, false},
    {"ls", cli_ls, "list them", ls_help, false, NULL, false},
    {"wait", cli_wait, "wait at a word until notified", wait_help, false, NULL, false},
    {"notify", cli_notify, "wake those who wait at a word", notify_help, false, NULL, false},
    {"load", cli_load, "print a word", load_help, false, NULL, false},
    {"store", cli_store, "write a word", store_help, false, NULL, false},
    {"add", cli_add, "add to a word", add_help, false, NULL, false},
    {"cas", cli_cas, "compare and swap a word", cas_help, false, NULL, false},
    {"show", cli_show, "who holds what, and who waits where", show_help, false, NULL, false},
    {"top", NULL, "the same, live and full screen", top_help, false,
     "it needs ncurses; install that (apt install libncurses-dev) and build vigil again", false},
    {"trace", cli_trace, "record what happens, for Perfetto or as a picture", trace_help, false, NULL, false},
    {"doctor", cli_doctor, "find what is wrong, and repair it", doctor_help, false, NULL, false},
    {"run", cli_run, "run a program on these locks, and see its threads wait", run_help, true, NULL, true},
    {"demo", NULL, "see it at work", demo_help, false, "make demo, in vigil's sources, builds and runs it", false},
    {"bench", NULL, "measure it", bench_help, false, "make bench, in vigil's sources, builds and runs it", false},
    {0}};
