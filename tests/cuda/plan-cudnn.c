/*
 * plan-cudnn.c - cuDNN's attention on unpadded rows, forward, as one operation
 * in plain C, planned for a GPU that is not here; see plan-cudnn.h.
 *
 *     plan-cudnn ARCH        for example 90
 *
 * SPDX-License-Identifier: MIT
 */
#include <cudnn.h>
#include <stdbool.h>
#include <stdlib.h>

#include "plan-cudnn.h"

static void need(cudnnStatus_t status, const char *what)
{
    char text[400];

    if (!status)
        return;
    cudnnGetLastErrorString(text, sizeof text);
    printf("%s: %s: %s\n", what, cudnnGetErrorString(status), text);
    exit(1);
}

static cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d;

    need(cudnnBackendCreateDescriptor(type, &d), "create");
    return d;
}

static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *value)
{
    need(cudnnBackendSetAttribute(d, name, type, n, value), "set");
}

static void link_to(cudnnBackendDescriptor_t d,
                    cudnnBackendAttributeName_t name,
                    cudnnBackendDescriptor_t to)
{
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

/* Tensors of 4 dimensions, span, head, row, column; ragged: none or offsets. */
static cudnnBackendDescriptor_t tensor(int64_t uid, cudnnDataType_t type,
                                       const int64_t size[4],
                                       const int64_t stride[4],
                                       cudnnBackendDescriptor_t ragged)
{
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const int64_t aligned = 16;

    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &aligned);
    if (ragged)
        link_to(d, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, ragged);
    need(cudnnBackendFinalize(d), "tensor");
    return d;
}

static cudnnBackendDescriptor_t vector(int64_t uid, int64_t n)
{
    return tensor(uid, CUDNN_DATA_INT32, (int64_t[]){n, 1, 1, 1},
                  (int64_t[]){1, 1, 1, 1}, NULL);
}

/* A scalar that is given by value when the plan runs. */
static cudnnBackendDescriptor_t scalar(int64_t uid)
{
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const int64_t one[4] = {1, 1, 1, 1}, aligned = 16;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const bool yes = true;

    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, one);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, one);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &aligned);
    set(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    need(cudnnBackendFinalize(d), "scalar");
    return d;
}

/* Rows of 3 (q, k, v) or 1 (out) times all heads, one after another. */
static cudnnBackendDescriptor_t rows(int64_t uid, int64_t parts,
                                     cudnnBackendDescriptor_t offsets)
{
    const int64_t row = parts * HEADS * WIDTH;

    return tensor(uid, CUDNN_DATA_BFLOAT16,
                  (int64_t[]){SPANS, HEADS, LONGEST, WIDTH},
                  (int64_t[]){LONGEST * row, WIDTH, row, 1}, offsets);
}

static cudnnBackendDescriptor_t operation(void)
{
    cudnnBackendDescriptor_t op
        = make(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    cudnnBackendDescriptor_t in = vector(1, SPANS + 1);
    cudnnBackendDescriptor_t out = vector(2, SPANS + 1);
    cudnnBackendDescriptor_t stats
        = tensor(8, CUDNN_DATA_FLOAT, (int64_t[]){SPANS, HEADS, LONGEST, 1},
                 (int64_t[]){HEADS * LONGEST, LONGEST, 1, 1}, NULL);

    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, rows(3, 3, in));
    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, rows(4, 3, in));
    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, rows(5, 3, in));
    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, rows(6, 1, out));
    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, stats);
    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scalar(9));
    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC,
            vector(10, SPANS));
    link_to(op, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC,
            vector(11, SPANS));
    need(cudnnBackendFinalize(op), "operation");
    return op;
}

static cudnnBackendDescriptor_t device(int arch)
{
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    char text[DEVICE_TEXT];

    plan_device(text, arch);
    set(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
        (int64_t)strlen(text), text);
    need(cudnnBackendFinalize(d), "device");
    return d;
}

/* Whether it compiles. */
static bool plan(cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t gpu)
{
    cudnnBackendDescriptor_t p = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    cudnnStatus_t status;

    link_to(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    link_to(p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, gpu);
    status = cudnnBackendFinalize(p);
    return !status || plan_compiled(cudnnGetErrorString(status));
}

/* What heuristics propose for the graph; how many that is. */
static int64_t propose(cudnnBackendDescriptor_t graph,
                       cudnnBackendDescriptor_t gpu, int64_t most,
                       cudnnBackendDescriptor_t *configs)
{
    cudnnBackendDescriptor_t heur = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t n;

    link_to(heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    link_to(heur, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, gpu);
    need(cudnnBackendFinalize(heur), "heuristics");
    for (int64_t i = 0; i < most; i++)
        configs[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    need(cudnnBackendGetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &n,
                                  configs),
         "results");
    return n < most ? n : most;
}

int main(int argc, char **argv)
{
    enum { MOST = 8 };
    const int arch = argc == 2 ? atoi(argv[1]) : 90;
    cudnnBackendDescriptor_t gpu = device(arch);
    cudnnBackendDescriptor_t graph
        = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnnBackendDescriptor_t configs[MOST];
    int64_t n;
    int good = 0;

    link_to(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation());
    need(cudnnBackendFinalize(graph), "graph");
    n = propose(graph, gpu, MOST, configs);
    for (int64_t i = 0; i < n; i++)
        good += plan(configs[i], gpu);
    printf("forward, sm_%d: %d of %d plans compiled\n", arch, good, (int)n);
    return !good;
}
