/* SPDX-License-Identifier: MIT */
/*
 * serve - a cluster for scripts. It prints the endpoints, and the folder, and then obeys the lines that it reads:
 *
 *     kill I | freeze I | thaw I | restart I      as of cluster.h; replies "done", or "failed"
 *     leader                                      replies with the number of the node that leads, or "none"
 *     stop
 *
 *     serve [--tls] [--client-auth] [--ipv6] [--host ADDRESS] NODES
 *
 * At the end of its input, and when its parent ends, all nodes end.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cluster.h"
#include "etcd.h"

#define SECOND_NS INT64_C(1000000000)

static struct cluster cluster;

struct serve_status {
    struct etcd_call call;
    bool ended, leads;
};

static void serve_has_status(struct etcd_call *call, const struct etcd_reply *reply) {
    struct serve_status *status = call->data;
    status->leads = reply->status == VIGIL_OK && reply->leader && reply->leader == reply->member;
    status->ended = true;
}

static bool serve_leads(int node) {
    struct serve_status status = {.call = {.done = serve_has_status, .data = &status}};
    vigil_agent *agent;
    struct etcd *etcd;
    if (vigil_agent_create(&agent, 0) != VIGIL_OK) return false;
    if (etcd_open(&etcd, agent, cluster_at_node(&cluster, node), NULL) == VIGIL_OK) {
        etcd_status(etcd, &status.call, etcd_now_ns(etcd) + SECOND_NS);
        struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
        while (!status.ended && poll(&seat, 1, -1) >= 0) vigil_agent_dispatch(agent);
        etcd_close(etcd);
    }
    vigil_agent_destroy(agent);
    return status.leads;
}

static void serve_tell_leader(void) {
    for (int i = 0; i < cluster.count; i++) {
        if (!cluster.nodes[i].pid || !serve_leads(i)) continue;
        printf("%d\n", i);
        return;
    }
    puts("none");
}

/* False: the end. */
static bool serve_obey(const char *line) {
    char verb[16] = "";
    int node = 0;
    bool good = true;
    int words = sscanf(line, "%15s %d", verb, &node);
    if (strcmp(verb, "stop") == 0) return false;
    if (strcmp(verb, "leader") == 0) {
        serve_tell_leader();
        return true;
    }
    if (words != 2 || node < 0 || node >= cluster.count) good = false;
    else if (strcmp(verb, "kill") == 0) cluster_kill(&cluster, node);
    else if (strcmp(verb, "freeze") == 0) good = cluster_freeze(&cluster, node);
    else if (strcmp(verb, "thaw") == 0) cluster_thaw(&cluster, node);
    else if (strcmp(verb, "restart") == 0) good = cluster_restart(&cluster, node);
    else good = false;
    puts(good ? "done" : "failed");
    return true;
}

static int serve_count(char **arguments, struct cluster_options *options) {
    for (arguments++; *arguments && **arguments == '-'; arguments++) {
        if (strcmp(*arguments, "--tls") == 0) options->tls = true;
        else if (strcmp(*arguments, "--client-auth") == 0) options->client_auth = true;
        else if (strcmp(*arguments, "--ipv6") == 0) options->ipv6 = true;
        else if (strcmp(*arguments, "--host") == 0 && arguments[1]) options->host = *++arguments;
        else return 0;
    }
    int count = *arguments ? atoi(*arguments) : 0;
    return count <= CLUSTER_NODES ? count : 0;
}

int main(int count, char **arguments) {
    struct cluster_options options = {0};
    char line[64];
    (void)count;
    int nodes = serve_count(arguments, &options);
    if (nodes < 1) {
        fputs("usage: serve [--tls] [--client-auth] [--ipv6] [--host ADDRESS] NODES\n", stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!cluster_start(&cluster, nodes, &options)) return 1;
    printf("%s %s\n", cluster_at(&cluster), cluster.folder);
    while (fgets(line, sizeof line, stdin) && serve_obey(line)) continue;
    cluster_stop(&cluster);
    return 0;
}
