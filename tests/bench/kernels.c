/* kernels.c - logs each kernel that a program runs on a GPU.
 *
 * The CUDA driver loads it if CUDA_INJECTION64_PATH names it.  A line of
 * $KERNELS_FILE has the start and end of a kernel in nanoseconds, and its
 * mangled name.  kernels.py compiles it with KERNEL, the newest record that
 * cupti_activity.h has.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cupti.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER_BYTES ((size_t)4 << 20)

static FILE *out;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size,
                                 size_t *max_records)
{
    *size = BUFFER_BYTES;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *max_records = 0;
    if (*buffer == NULL)
        abort();
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream,
                                 uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size;
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record)
           == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            continue;
        const KERNEL *k = (const KERNEL *)record;
        fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%s\n", k->start, k->end,
                k->name);
    }
    free(buffer);
}

static void finish(void)
{
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (fclose(out) != 0)
        abort();
}

/* Called by the driver when it starts; 0 is a failure. */
int InitializeInjection(void);
int InitializeInjection(void)
{
    const char *name = getenv("KERNELS_FILE");
    out = name != NULL ? fopen(name, "w") : NULL;
    return out != NULL
           && cuptiActivityRegisterCallbacks(give_buffer, take_buffer)
                  == CUPTI_SUCCESS
           && cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
                  == CUPTI_SUCCESS
           && atexit(finish) == 0;
}
