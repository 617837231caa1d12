/* SPDX-License-Identifier: MIT */
#include "vigil/mutex.h"

int vigil_mutex_in(vigil_view view, uint64_t index, vigil_mutex **mutex) {
    if (!mutex) return VIGIL_ENULL;
    if (view.type != VIGIL_I32 && view.type != VIGIL_U32) return VIGIL_ETYPE;
    if (index >= vigil_view_length(view)) return VIGIL_ERANGE;
    char *data = vigil_buffer_data(view.buffer);
    if (!data) return VIGIL_EFORKED;
    *mutex = (vigil_mutex *)(void *)(data + view.byte_offset + index * sizeof(uint32_t));
    return VIGIL_OK;
}
