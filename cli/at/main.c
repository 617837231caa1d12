/* SPDX-License-Identifier: MIT */
/* vigil-at SUBCOMMAND: finds the subcommand, and has what all of them need: see at.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../descriptors.h"
#include "at.h"

const struct cli_command *cli_now;
bool cli_wants_json;

/* What etcdctl reads. What is on the command line replaces the variable: also the password in --user name:password. */
static void at_read_environment(struct at *at) {
    vigil_remote_options *options = &at->options;
    bool has_password = options->password || (options->user && strchr(options->user, ':'));
    if (!options->cacert) options->cacert = getenv("ETCDCTL_CACERT");
    if (!options->cert) options->cert = getenv("ETCDCTL_CERT");
    if (!options->key) options->key = getenv("ETCDCTL_KEY");
    if (!options->user) options->user = getenv("ETCDCTL_USER");
    if (!has_password) options->password = getenv("ETCDCTL_PASSWORD");
}

/* `length` 0: all of `hosts`. False: they are too long. */
static bool at_set_endpoints(struct at *at, const char *scheme, const char *hosts, int length) {
    int most = length ? length : (int)strlen(hosts);
    return snprintf(at->endpoints, sizeof at->endpoints, "%s%.*s", scheme, most, hosts) < (int)sizeof at->endpoints;
}

/* "etcd://h1:2379,h2:2379/NAME": the endpoints, and the name if there is one. Without endpoints: those of etcdctl. */
static bool at_split(struct at *at) {
    static const char scheme[] = "etcd://";
    const char *text = at->text ? at->text : "";
    if (strncmp(text, scheme, strlen(scheme)) != 0) {
        cli_usage("--at: invalid cluster '%s'; write etcd://host:2379,host:2379/NAME", text);
        return false;
    }
    const char *hosts = text + strlen(scheme), *slash = strchr(hosts, '/'), *set = getenv("ETCDCTL_ENDPOINTS");
    int length = (int)(slash ? slash - hosts : (int)strlen(hosts));
    const char *name = slash ? slash + 1 : "";
    if (strlen(name) >= sizeof at->name) {
        cli_usage("--at: the name is too long: at most %d characters", VIGIL_REMOTE_NAME);
        return false;
    }
    strcpy(at->name, name);
    if (at_set_endpoints(at, length ? scheme : "", length ? hosts : set ? set : "etcd://127.0.0.1:2379", length))
        return true;
    cli_usage("the endpoints are too long: at most %zu bytes", sizeof at->endpoints - 1);
    return false;
}

bool at_read(struct at *at, char ***operands, int *operand_count, bool maybe) {
    if (!at->text) at->text = getenv("VIGIL_AT");
    at_read_environment(at);
    if (!at_split(at)) return false;
    if (!at->name[0] && *operand_count) {
        if (strlen(**operands) >= sizeof at->name) {
            cli_usage("the name is too long: at most %d characters", VIGIL_REMOTE_NAME);
            return false;
        }
        strcpy(at->name, **operands);
        ++*operands;
        --*operand_count;
    }
    if (at->name[0] || maybe) return true;
    cli_usage("a NAME is missing: write it after the cluster, etcd://host:2379/NAME");
    return false;
}

bool at_open(struct at *at) {
    int status = vigil_agent_create(&at->agent, 0);
    if (status == VIGIL_OK) {
        status = vigil_remote_open(&at->remote, at->agent, at->endpoints, &at->options);
        if (status != VIGIL_OK) vigil_agent_destroy(at->agent);
    }
    if (status == VIGIL_OK) return true;
    if (status == VIGIL_EINVAL && at->options.ttl_ns && at->options.ttl_ns < INT64_C(1000000000))
        cli_fail(VIGIL_OK, "--ttl: at least 1s, or a lease would end before it can be renewed");
    else if (status == VIGIL_ERANGE) cli_fail(VIGIL_OK, "--ttl: at most 65535s, which is some 18h");
    else if (status == VIGIL_EINVAL)
        cli_fail(VIGIL_OK, "%s: the endpoints, or the files of --cacert, --cert and --key, cannot be used: %s",
                 at->endpoints, errno ? strerror(errno) : "write etcd://host:2379,host:2379/NAME");
    else cli_fail(status, "%s", at->endpoints);
    return false;
}

void at_close(struct at *at) {
    vigil_remote_close(at->remote);
    vigil_agent_destroy(at->agent);
}

bool at_run(struct at *at, const bool *done, int fd, int timeout_ms) {
    struct pollfd from[] = {{.fd = vigil_agent_fd(at->agent), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    while (!*done) {
        int ready = poll(from, fd < 0 ? 1 : 2, timeout_ms);
        if (from[0].revents) vigil_agent_dispatch(at->agent);
        if (ready == 0 || (ready > 0 && fd >= 0 && from[1].revents)) break;
    }
    return *done;
}

int at_fail(const struct at *at, int status) {
    const char *why = vigil_remote_why(at->remote);
    bool explained = why[0] && (status == VIGIL_EUNREACHABLE || status == VIGIL_EREFUSED || status == VIGIL_EPROTOCOL ||
                                status == VIGIL_TIMED_OUT);
    const char *name = at->name[0] ? at->name : at->endpoints;
    return explained ? cli_fail(VIGIL_OK, "%s: %s", name, why) : cli_fail(status, "%s", name);
}

char *at_say_holder(const vigil_remote_holder *holder, char *text, size_t bytes) {
    char what[128], host[128];
    cli_visible(what, sizeof what, holder->text);
    cli_visible(host, sizeof host, holder->host);
    snprintf(text, bytes, "pid %u on %s: %s", holder->pid, host, what);
    return text;
}

/* Whether the cluster is given with the name: then the command begins with the first word. */
static bool at_has_name(int count, char **arguments) {
    const char *text = getenv("VIGIL_AT");
    for (int i = 2; i < count && strcmp(arguments[i], "--") != 0; i++) {
        if (strncmp(arguments[i], "--at=", 5) == 0) text = arguments[i] + 5;
        else if (strcmp(arguments[i], "--at") == 0 && i + 1 < count) text = arguments[i + 1];
        else continue;
        break;
    }
    const char *hosts = text ? strstr(text, "://") : NULL, *slash = hosts ? strchr(hosts + 3, '/') : NULL;
    return slash && slash[1];
}

int main(int count, char **arguments) {
    static struct cli_command now;
    fill_standard_descriptors();
    const char *name = count > 1 ? arguments[1] : "";
    const struct cli_command *found = cli_commands;
    while (found->name && strcmp(found->name, name) != 0) found++;
    now = *found;
    now.has_no_name = found->runs_command && at_has_name(count, arguments);
    if (found->name) cli_now = &now;
    if (!found->name) {
        return cli_usage("this program is for vigil: use vigil SUBCOMMAND --at etcd://host:2379/NAME");
    }
    int status = cli_now->run(count - 1, arguments + 1);
    errno = 0;
    bool lost = ferror(stdout);
    if (fclose(stdout) == 0 && !lost) return status;
    cli_wants_json = false;
    return errno ? cli_fail(VIGIL_ESYSTEM, "cannot write the output") : cli_fail(VIGIL_OK, "cannot write the output");
}
