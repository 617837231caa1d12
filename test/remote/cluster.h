/* SPDX-License-Identifier: MIT */
/*
 * cluster.h - a real etcd for tests: one node or several, on free ports of the loopback, in a folder below TMPDIR. The
 * nodes end with the thread that has started them, also if it is killed. Each is a process group of its own: a signal
 * to the group of the test does not stop or continue it.
 */
#ifndef VIGIL_TEST_CLUSTER_H
#define VIGIL_TEST_CLUSTER_H

#include <stdbool.h>
#include <sys/types.h>

#define CLUSTER_NODES 5

struct cluster_options {
    bool tls;         /* with the certificates of cluster_make_certificates, in the folder */
    bool client_auth; /* a certificate is asked of clients as well */
    const char *host; /* at which clients reach it; null: 127.0.0.1 */
    bool ipv6;        /* it listens there as well, at all addresses */
    const char *more; /* one more argument of etcd; null: none */
};

struct cluster {
    int count;
    struct cluster_options options;
    char folder[128];
    struct cluster_node {
        pid_t pid; /* 0: it does not run */
        int client_port, peer_port;
    } nodes[CLUSTER_NODES];
};

/* The path of etcd: VIGIL_ETCD, or of the PATH; null: there is none, and the test is skipped. */
const char *cluster_etcd(void);

/* Starts the nodes and waits until each accepts connections. False, with a message: that fails. */
bool cluster_start(struct cluster *cluster, int count, const struct cluster_options *options);
void cluster_stop(struct cluster *cluster); /* and removes the folder */
/* One node: kill it, stop it (SIGSTOP) and let it go on, start it again with its data. False: it does not run, or has
 * ended, and is not stopped. */
void cluster_kill(struct cluster *cluster, int node);
bool cluster_freeze(struct cluster *cluster, int node);
void cluster_thaw(struct cluster *cluster, int node);
bool cluster_restart(struct cluster *cluster, int node);

/* "etcd://127.0.0.1:PORT,..." of all nodes, or of one. In a buffer of its own for each call, of the last eight. */
const char *cluster_at(const struct cluster *cluster);
const char *cluster_at_node(const struct cluster *cluster, int node);

/* A port that was free just now. */
int cluster_free_port(void);

/* ca.pem, server.pem, server.key (for 127.0.0.1, ::1, localhost), other.pem, other.key (for another name), client.pem,
 * client.key (CN=root), wrong_ca.pem. False: openssl is missing. */
bool cluster_make_certificates(const char *folder);

#endif
