/* SPDX-License-Identifier: MIT */
/* The subcommands of vigil-at, each with the text of its --help, at most 80 columns wide. */
#include "at.h"

/* clang-format off */
#define CLUSTER \
    "  --at CLUSTER       etcd://host:2379,host:2379/NAME; or without /NAME, and the\n" \
    "                     NAME as the first operand. Default: VIGIL_AT\n" \
    "  --ttl T            how long a lock outlives a machine that fails (default 10s)\n" \
    "  --cacert FILE      the authorities that are trusted: the connection is encrypted\n" \
    "  --cert FILE        the certificate of this client\n" \
    "  --key FILE         and its key\n" \
    "  --user NAME        or NAME:PASSWORD\n" \
    "  --json             for programs\n" \
    "\n" \
    "The variables ETCDCTL_ENDPOINTS, _CACERT, _CERT, _KEY, _USER and _PASSWORD are\n" \
    "used as etcdctl does, where the options do not say otherwise.\n"

static const char lock_help[] =
    "usage: vigil lock --at etcd://HOST:PORT,.../NAME [OPTION...] -- COMMAND [ARG...]\n"
    "\n"
    "Runs the command while holding the lock NAME of an etcd cluster, and returns the\n"
    "command's exit status. All machines wait in one line, first come, first served;\n"
    "processes of one machine and user stand in it once, and hand the lock to each\n"
    "other. The command gets VIGIL_TOKEN, a number that grows with every grant: let\n"
    "what is written to refuse a token that is less than one it has seen. VIGIL_KEY\n"
    "is the key in etcd that exists while the lock is held.\n"
    "\n"
    "If the lease cannot be renewed, the command and all that it has started get\n"
    "SIGTERM and, before the lease ends, SIGKILL; the exit status is 75.\n"
    "\n"
    "  -w, --timeout T    wait for the lock at most this long: 250ms, 30s, 5m\n"
    "  -n, --try          do not wait: if the lock is not free, exit with 124\n"
    "  -E, --conflict-exit-code STATUS\n"
    "                     exit with STATUS instead of 124\n"
    "  --fair             the only way there: changes nothing\n"
    "  -s, --shared       share the lock with others that use --shared (to read)\n"
    "  -x, --exclusive    do not share it: the default\n"
    "  --wait-status      print the place in the line, even without a terminal\n"
    "  --on-owner-died continue|fail\n"
    "                     if the last holder died or lost the lock: warn, and run the\n"
    "                     command with VIGIL_OWNER_DIED=1; or fail\n"
    CLUSTER
    "\n"
    "Exit status: the command's; 75 if the lock was lost; 128 plus the signal's\n"
    "number if it was killed; 124 if the lock was not available in time; 125 if vigil\n"
    "failed, or was used wrongly; 126 and 127 as of env.\n"
    "\n"
    "Example:\n"
    "  vigil lock --at etcd://10.0.0.1:2379,10.0.0.2:2379/deploy -- ./deploy.sh\n";

static const char sem_help[] =
    "usage: vigil sem --at etcd://HOST:PORT,.../NAME --slots N [OPTION...] -- COMMAND\n"
    "\n"
    "Runs the command while holding one of the N slots of the semaphore NAME of an\n"
    "etcd cluster: on all machines together, at most N such commands run at once.\n"
    "VIGIL_TOKEN, VIGIL_KEY and the end of a lease are as for vigil lock --at.\n"
    "\n"
    "  -j, --slots N      how many slots there are, the same on all machines\n"
    "  -w, --timeout T    wait for a slot at most this long: 250ms, 30s, 5m\n"
    "  -n, --try          do not wait: if no slot is free, exit with 124\n"
    "  -E, --conflict-exit-code STATUS\n"
    "                     exit with STATUS instead of 124\n"
    "  --fair             the only way there: changes nothing\n"
    "  --wait-status      print the place in the line, even without a terminal\n"
    CLUSTER
    "\n"
    "Exit status: as for vigil lock --at.\n";

static const char wait_help[] =
    "usage: vigil wait --at etcd://HOST:PORT,.../NAME EXPECTED [OPTION...]\n"
    "       vigil wait --at etcd://HOST:PORT,.../NAME --until VALUE [OPTION...]\n"
    "\n"
    "If the key NAME of an etcd cluster is EXPECTED, waits until it is notified.\n"
    "Comparing and joining the line are one step, so no notification is missed.\n"
    "Prints ok, not-equal or timed-out. A key that does not exist is 0. With --until,\n"
    "waits until the key is VALUE.\n"
    "\n"
    "  --until VALUE      wait until the key is VALUE; at once if it is already\n"
    "  --timeout T        wait at most this long: 250ms, 30s, 5m (default: forever)\n"
    CLUSTER
    "\n"
    "Exit status: 0 notified, or the key is VALUE; 1 the key is not EXPECTED; 2 timed\n"
    "out; 3 failed; 64 usage.\n";

static const char notify_help[] =
    "usage: vigil notify --at etcd://HOST:PORT,.../NAME [COUNT] [OPTION...]\n"
    "\n"
    "Wakes the first COUNT waiters at the key, or all of them, on all machines, and\n"
    "prints how many it woke.\n"
    "\n"
    CLUSTER
    "\n"
    "Exit status: 0, even if there are no waiters; 3 failed; 64 usage.\n";

static const char load_help[] =
    "usage: vigil load --at etcd://HOST:PORT,.../NAME [OPTION...]\n"
    "\n"
    "Prints the key; 0 if it does not exist.\n"
    "\n"
    CLUSTER
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n";

static const char store_help[] =
    "usage: vigil store --at etcd://HOST:PORT,.../NAME VALUE [OPTION...]\n"
    "\n"
    "Writes the key. It wakes no waiters without --notify.\n"
    "\n"
    "  --notify           then wake all waiters at the key; --json tells how many\n"
    CLUSTER
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n";

static const char cas_help[] =
    "usage: vigil cas --at etcd://HOST:PORT,.../NAME EXPECTED NEW [OPTION...]\n"
    "\n"
    "If the key is EXPECTED, makes it NEW. Prints the value that it had.\n"
    "\n"
    "  --notify           if written: then wake all waiters at the key\n"
    CLUSTER
    "\n"
    "Exit status: 0 written; 1 the key was not EXPECTED; 3 failed; 64 usage.\n";

static const char show_help[] =
    "usage: vigil show --at etcd://HOST:PORT,.../NAME [OPTION...]\n"
    "\n"
    "Prints which process of which machine holds the lock, and the line of those that\n"
    "wait. Of the processes of one machine that want it alone, one is in the line.\n"
    "\n"
    CLUSTER
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n";

static const char top_help[] =
    "usage: vigil top --at etcd://HOST:PORT,.../NAME [OPTION...]\n"
    "\n"
    "What vigil show prints, every second, until it is interrupted.\n"
    "\n"
    CLUSTER
    "\n"
    "Exit status: 0; 3 failed; 64 usage.\n";

static const char doctor_help[] =
    "usage: vigil doctor --at etcd://HOST:PORT,...[/NAME] [OPTION...]\n"
    "\n"
    "Checks that the cluster replies, has a leader and accepts changes, that a lease\n"
    "lives long enough for its round trip, and that no holder of the lock has died.\n"
    "\n"
    CLUSTER
    "\n"
    "Exit status: 0 all is good; 1 there are faults; 3 failed; 64 usage.\n";

const struct cli_command cli_commands[] = {
    {"lock", at_lock, "", lock_help, true, NULL, false},
    {"sem", at_sem, "", sem_help, true, NULL, false},
    {"wait", at_wait, "", wait_help, false, NULL, false},
    {"notify", at_notify, "", notify_help, false, NULL, false},
    {"load", at_load, "", load_help, false, NULL, false},
    {"store", at_store, "", store_help, false, NULL, false},
    {"cas", at_cas, "", cas_help, false, NULL, false},
    {"show", at_show, "", show_help, false, NULL, false},
    {"top", at_top, "", top_help, false, NULL, false},
    {"doctor", at_doctor, "", doctor_help, false, NULL, false},
    {0}};
