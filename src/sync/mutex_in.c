/* SPDX-License-Identifier: MIT */
#include "vigil/mutex.h"

int vigil_mutex_in(vigil_view view, uint64_t index, vigil_mutex **mutex) {
    if (!mutex) return VIGIL_ENULL;
    if (view.type != VIGIL_I32 && view.type != VIGIL_U32) return VIGIL_ETYPE;
    if (index >= vigil_view_length(view)) return VIGIL_ERANGE;
    char *words = (char *)vigil_buffer_data(view.buffer) + view.byte_offset;
    *mutex = (vigil_mutex *)(void *)(words + index * sizeof(uint32_t));
    return VIGIL_OK;
}
