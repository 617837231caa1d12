/* SPDX-License-Identifier: MIT */
#include "vigil/status.h"

const char *vigil_status_name(int status) {
    switch (status) {
#define X(name, number, text, meaning)                                                                                 \
    case number: return text;
        VIGIL_STATUS_MAP(X)
#undef X
    default: return "unknown";
    }
}

const char *vigil_strerror(int status) {
    switch (status) {
#define X(name, number, text, meaning)                                                                                 \
    case number: return meaning;
        VIGIL_STATUS_MAP(X)
#undef X
    default: return "not a Vigil status";
    }
}
