/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "cluster.h"

#include "vigil/named.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void cluster_nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

const char *cluster_etcd(void) {
    static char found[4096];
    const char *named = getenv("VIGIL_ETCD"), *path = getenv("PATH");
    if (named && access(named, X_OK) == 0) return named;
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        snprintf(found, sizeof found, "%.*s/etcd", length, path);
        if (access(found, X_OK) == 0) return found;
        path += length + (path[length] == ':');
    }
    return NULL;
}

static struct sockaddr_in cluster_address(int port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int cluster_free_port(void) {
    struct sockaddr_in address = cluster_address(0);
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                getsockname(fd, (struct sockaddr *)&address, &length) == 0;
    close(fd);
    return good ? ntohs(address.sin_port) : -1;
}

static bool cluster_accepts(int port) {
    struct sockaddr_in address = cluster_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return good;
}

struct arguments {
    char text[40][1100];
    char *list[41];
    int count;
};

static char *argument(struct arguments *arguments) {
    char *text = arguments->text[arguments->count];
    arguments->list[arguments->count++] = text;
    return text;
}
#define ARGUMENT(arguments, ...) snprintf(argument(arguments), sizeof(arguments)->text[0], __VA_ARGS__)

static const char *cluster_host(const struct cluster *cluster) {
    return cluster->options.host ? cluster->options.host : "127.0.0.1";
}

static const char *cluster_listens_at(const struct cluster *cluster) {
    return cluster->options.ipv6 ? "[::]" : cluster->options.host ? "0.0.0.0" : "127.0.0.1";
}

static void cluster_arguments(const struct cluster *cluster, int node, struct arguments *a) {
    const char *scheme = cluster->options.tls ? "https" : "http", *folder = cluster->folder;
    int client = cluster->nodes[node].client_port, peer = cluster->nodes[node].peer_port;
    ARGUMENT(a, "%s", cluster_etcd());
    ARGUMENT(a, "--name=n%d", node);
    ARGUMENT(a, "--data-dir=%s/n%d", folder, node);
    ARGUMENT(a, "--listen-client-urls=%s://%s:%d", scheme, cluster_listens_at(cluster), client);
    ARGUMENT(a, "--advertise-client-urls=%s://%s:%d", scheme, cluster_host(cluster), client);
    ARGUMENT(a, "--listen-peer-urls=http://127.0.0.1:%d", peer);
    ARGUMENT(a, "--initial-advertise-peer-urls=http://127.0.0.1:%d", peer);
    char *all = argument(a);
    size_t used = (size_t)snprintf(all, sizeof a->text[0], "--initial-cluster=");
    for (int i = 0; i < cluster->count; i++)
        used += (size_t)snprintf(all + used, sizeof a->text[0] - used, "%sn%d=http://127.0.0.1:%d", i ? "," : "", i,
                                 cluster->nodes[i].peer_port);
    ARGUMENT(a, "--logger=zap");
    ARGUMENT(a, "--log-level=info"); /* see cluster_serves */
    if (cluster->options.tls) {
        ARGUMENT(a, "--cert-file=%s/server.pem", folder);
        ARGUMENT(a, "--key-file=%s/server.key", folder);
    }
    if (cluster->options.client_auth) {
        ARGUMENT(a, "--client-cert-auth");
        ARGUMENT(a, "--trusted-ca-file=%s/ca.pem", folder);
    }
    if (cluster->options.more) ARGUMENT(a, "%s", cluster->options.more);
    a->list[a->count] = NULL;
}

/* The status as of waitpid; -1: there is no such child. */
static int cluster_wait(pid_t pid, int flags) {
    int status;
    pid_t changed;
    do changed = waitpid(pid, &status, flags);
    while (changed < 0 && errno == EINTR);
    return changed == pid ? status : -1;
}

static bool cluster_spawn(struct cluster *cluster, int node) {
    static struct arguments arguments;
    arguments.count = 0;
    cluster_arguments(cluster, node, &arguments);
    char log[256];
    snprintf(log, sizeof log, "%s/n%d.log", cluster->folder, node);
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        setpgid(0, 0);
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        setenv("ETCD_UNSUPPORTED_ARCH", "arm64", 1);
        execv(arguments.list[0], arguments.list);
        _exit(127);
    }
    cluster->nodes[node].pid = pid;
    return pid > 0;
}

static void cluster_run(char *const *arguments) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(arguments[0], arguments);
        _exit(127);
    }
    cluster_wait(pid, 0);
}

static void cluster_show_log(const struct cluster *cluster, int node) {
    char command[256];
    fprintf(stderr, "etcd has ended:\n");
    snprintf(command, sizeof command, "tail -n 3 '%s/n%d.log' >&2", cluster->folder, node);
    cluster_run((char *[]){"sh", "-c", command, NULL});
}

static bool cluster_await(struct cluster *cluster, int node) {
    struct cluster_node *self = &cluster->nodes[node];
    while (!cluster_accepts(self->client_port)) {
        int status;
        if (waitpid(self->pid, &status, WNOHANG) == self->pid) {
            self->pid = 0;
            cluster_show_log(cluster, node);
            return false;
        }
        cluster_nap();
    }
    return true;
}

/* Whether the log says that the node serves clients: before, it accepts connections and says nothing. */
static bool cluster_serves(const struct cluster *cluster, int node) {
    char path[256], line[4096];
    bool serves = false;
    snprintf(path, sizeof path, "%s/n%d.log", cluster->folder, node);
    FILE *log = fopen(path, "r");
    while (log && !serves && fgets(line, sizeof line, log)) serves = strstr(line, "serving client traffic") != NULL;
    if (log) fclose(log);
    return serves;
}

static bool cluster_all_serve(struct cluster *cluster, int patience_s) {
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int i = 0; i < cluster->count; i++) {
        while (!cluster_serves(cluster, i)) {
            cluster_nap();
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec - begun.tv_sec >= patience_s) return false;
        }
    }
    return true;
}

static bool cluster_begin(struct cluster *cluster) {
    for (int i = 0; i < cluster->count; i++) {
        cluster->nodes[i].client_port = cluster_free_port();
        cluster->nodes[i].peer_port = cluster_free_port();
    }
    for (int i = 0; i < cluster->count; i++)
        if (!cluster_spawn(cluster, i)) return false;
    for (int i = 0; i < cluster->count; i++)
        if (!cluster_await(cluster, i)) return false;
    return true;
}

static void cluster_forget(struct cluster *cluster) {
    for (int i = 0; i < cluster->count; i++) {
        char data[256], log[256];
        cluster_kill(cluster, i);
        snprintf(data, sizeof data, "%s/n%d", cluster->folder, i);
        snprintf(log, sizeof log, "%s/n%d.log", cluster->folder, i);
        cluster_run((char *[]){"rm", "-rf", data, log, NULL});
    }
}

/* About one new etcd 3.4.23 in ten elects no leader, and waits for ever: then begin again, with more patience. Also if
 * another program has taken one of the ports since it was found free. */
bool cluster_start(struct cluster *cluster, int count, const struct cluster_options *options) {
    struct cluster_options none = {0};
    *cluster = (struct cluster){.count = count, .options = options ? *options : none};
    const char *parent = getenv("TMPDIR");
    snprintf(cluster->folder, sizeof cluster->folder, "%s/vigil-etcd-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(cluster->folder)) return false;
    if (cluster->options.tls && !cluster_make_certificates(cluster->folder)) return false;
    for (int patience_s = 5; patience_s < 200; patience_s *= 2) {
        if (cluster_begin(cluster) && cluster_all_serve(cluster, patience_s)) return true;
        cluster_forget(cluster);
    }
    fprintf(stderr, "etcd does not begin to serve\n");
    return false;
}

void cluster_kill(struct cluster *cluster, int node) {
    struct cluster_node *self = &cluster->nodes[node];
    if (!self->pid) return;
    kill(self->pid, SIGKILL);
    cluster_wait(self->pid, 0);
    self->pid = 0;
}

/* A node that has been killed has no process: 0 would be the process group of the test. */
bool cluster_freeze(struct cluster *cluster, int node) {
    struct cluster_node *self = &cluster->nodes[node];
    if (!self->pid) return false;
    kill(self->pid, SIGSTOP);
    int status = cluster_wait(self->pid, WUNTRACED); /* until then some of its threads run on */
    if (status >= 0 && WIFSTOPPED(status)) return true;
    self->pid = 0;
    return false;
}

void cluster_thaw(struct cluster *cluster, int node) {
    if (cluster->nodes[node].pid) kill(cluster->nodes[node].pid, SIGCONT);
}

bool cluster_restart(struct cluster *cluster, int node) {
    cluster_kill(cluster, node);
    return cluster_spawn(cluster, node) && cluster_await(cluster, node);
}

/* The number of the cluster, as 16 digits, by the log of its first node. */
static bool cluster_number(const struct cluster *cluster, char number[17]) {
    static const char before[] = "\"cluster-id\":\"";
    char path[256], line[4096];
    bool found = false;
    snprintf(path, sizeof path, "%s/n0.log", cluster->folder);
    FILE *log = fopen(path, "r");
    while (log && !found && fgets(line, sizeof line, log)) {
        const char *at = strstr(line, before);
        found = at && sscanf(at + sizeof before - 1, "%16[0-9a-f]", number) == 1;
    }
    if (log) fclose(log);
    return found;
}

/* A machine has a named lock of its own before each lock of the cluster: lock_local_name in remote/lock.c. */
struct local_names {
    char prefix[32], names[64][256];
    int count;
};

static void cluster_note_name(const char *name, void *data) {
    struct local_names *local = data;
    bool ours = strncmp(name, local->prefix, strlen(local->prefix)) == 0;
    if (ours && local->count < 64) snprintf(local->names[local->count++], sizeof local->names[0], "%s", name);
}

static void cluster_remove_local_names(const struct cluster *cluster) {
    static struct local_names local;
    char number[17];
    local.count = 0;
    if (!cluster_number(cluster, number)) return;
    snprintf(local.prefix, sizeof local.prefix, "etcd-%016llx", strtoull(number, NULL, 16));
    vigil_named_list(cluster_note_name, &local);
    for (int i = 0; i < local.count; i++) vigil_named_remove(local.names[i], true);
}

void cluster_stop(struct cluster *cluster) {
    cluster_remove_local_names(cluster);
    for (int i = 0; i < cluster->count; i++) cluster_kill(cluster, i);
    if (cluster->folder[0]) cluster_run((char *[]){"rm", "-rf", cluster->folder, NULL});
    cluster->folder[0] = 0;
}

static char *cluster_text(void) {
    static char texts[8][512];
    static unsigned next;
    return texts[next++ % 8];
}

const char *cluster_at(const struct cluster *cluster) {
    char *text = cluster_text();
    size_t used = (size_t)snprintf(text, 512, "etcd://");
    for (int i = 0; i < cluster->count; i++)
        used += (size_t)snprintf(text + used, 512 - used, "%s%s:%d", i ? "," : "", cluster_host(cluster),
                                 cluster->nodes[i].client_port);
    return text;
}

const char *cluster_at_node(const struct cluster *cluster, int node) {
    char *text = cluster_text();
    snprintf(text, 512, "etcd://%s:%d", cluster_host(cluster), cluster->nodes[node].client_port);
    return text;
}

bool cluster_make_certificates(const char *folder) {
    static const char script[] =
        "cd \"$1\" && exec 2>openssl.log && set -e\n"
        "new='openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
        "ca() { $new -x509 -days 30 -keyout $1.key -out $1.pem -subj /CN=$1; }\n"
        "leaf() { $new -keyout $1.key -out $1.csr -subj /CN=$2; printf '%s' \"subjectAltName=$3\" >$1.ext\n"
        "  openssl x509 -req -days 30 -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile $1.ext -out $1.pem; "
        "}\n"
        "ca ca; ca wrong_ca\n"
        "leaf server etcd IP:127.0.0.1,IP:::1,DNS:localhost\n"
        "leaf other etcd DNS:elsewhere.example\n"
        "leaf client root DNS:root\n";
    char file[256];
    cluster_run((char *[]){"sh", "-c", (char *)(unsigned long)script, "sh", (char *)(unsigned long)folder, NULL});
    snprintf(file, sizeof file, "%s/client.pem", folder);
    return access(file, R_OK) == 0;
}
