/*
 * cudnn.cc - the calls of cudnn.h and cudnn_frontend.h.
 *
 * Attention is a host call in the handle's stream.  A graph that cuDNN would
 * refuse, or misread on a GPU, is refused, with the reason on stderr; wrong
 * data in device memory is a fault when the graph runs.  Numbers are rounded
 * where cuDNN's kernels may round them.  Memory that cuDNN leaves undefined is
 * made NaN: the workspace, and logarithms after a span's last row.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cudnn_frontend.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "cuda_bf16.h"
#include "internal.h"

using namespace hostcuda;
using namespace cudnn_frontend;
using graph::Graph;
using graph::tensor_pointer;

#define WIDEST 128

static hostcuda_cudnn_count counts;

hostcuda_cudnn_count hostcuda_cudnn_counts()
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    return counts;
}

/* -- handles ------------------------------------------------------------- */

struct hostcuda_cudnn_handle {
    bool destroyed;
    bool has_stream;
    cudaStream_t stream;
};

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
    return "";
}

static const char *refuse(const char *why)
{
    counts.refused = why;
    std::fprintf(stderr, "# cuDNN refuses %s\n", why);
    return why;
}

/* True if $HOSTCUDA_FAIL makes this call fail. */
static bool is_to_fail(const char *call)
{
    counts.refused = nullptr;
    return begin(call) != cudaSuccess;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (is_to_fail(__func__))
        return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = new hostcuda_cudnn_handle();
    counts.handles++;
    return CUDNN_STATUS_SUCCESS;
}

/* Never freed, so that the use of a destroyed one is detected. */
static std::deque<cudnnHandle_t> &graveyard = *new std::deque<cudnnHandle_t>;

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (!handle || handle->destroyed) {
        refuse("a handle that was destroyed");
        return CUDNN_STATUS_BAD_PARAM;
    }
    handle->destroyed = true;
    graveyard.push_back(handle);
    counts.handles--;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (is_to_fail(__func__))
        return CUDNN_STATUS_EXECUTION_FAILED;
    handle->stream = stream;
    handle->has_stream = true;
    return CUDNN_STATUS_SUCCESS;
}

/* -- graphs -------------------------------------------------------------- */

enum progress { DESCRIBED, VALID, BUILT, PROPOSED, SUPPORTED, PLANNED };

struct graph::attention {
    std::vector<tensor_pointer> tensors; /* all tensors created */
    tensor_pointer q, k, v, o, stats, d_o, d_q, d_k, d_v;
    tensor_pointer rows_q, rows_k, seed, offset;
    unsigned operations = 0;
    bool backward = false, generates = false, padding_mask = false;
    float scale = 0, dropout = 0;
    progress reached = DESCRIBED;
    cudnnHandle_t handle = nullptr;
    unsigned queued = 0; /* runs not yet begun */

    int64_t spans() const { return q->dim[0]; }
    int64_t heads() const { return q->dim[1]; }
    int64_t longest() const { return q->dim[2]; }
    int64_t width() const { return q->dim[3]; }
    int64_t workspace() const;
};

using graph::attention;

/* As for a kernel that accumulates dQ and keeps row sums. */
int64_t attention::workspace() const
{
    const int64_t rows = spans() * heads() * longest();

    return backward ? 4 * rows * (width() + 1) : 16;
}

Graph::Graph() : op(std::make_shared<attention>())
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    counts.graphs++;
}

Graph::~Graph()
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    counts.graphs--;
    if (op->queued > 0 && !stayed())
        fault("cuDNN", 0, "a graph is destroyed that is still to run");
}

tensor_pointer Graph::tensor(const graph::Tensor_attributes &t)
{
    op->tensors.push_back(std::make_shared<graph::Tensor_attributes>(t));
    return op->tensors.back();
}

template <typename T>
static void take(attention *op, const graph::sdpa_options<T> &options)
{
    op->operations++;
    op->rows_q = options.rows_q;
    op->rows_k = options.rows_k;
    op->seed = options.seed;
    op->offset = options.offset;
    op->padding_mask = options.padding_mask;
    op->scale = options.attn_scale;
    op->dropout = options.dropout;
}

std::array<tensor_pointer, 2> Graph::sdpa(tensor_pointer q, tensor_pointer k,
                                          tensor_pointer v,
                                          graph::SDPA_attributes options)
{
    take(op.get(), options);
    op->q = q;
    op->k = k;
    op->v = v;
    op->generates = options.generate_stats;
    op->o = tensor({});
    op->stats = tensor({});
    return {op->o, op->stats};
}

std::array<tensor_pointer, 3>
Graph::sdpa_backward(tensor_pointer q, tensor_pointer k, tensor_pointer v,
                     tensor_pointer o, tensor_pointer d_o,
                     tensor_pointer stats,
                     graph::SDPA_backward_attributes options)
{
    take(op.get(), options);
    op->backward = true;
    op->q = q;
    op->k = k;
    op->v = v;
    op->o = o;
    op->d_o = d_o;
    op->stats = stats;
    op->d_q = tensor({});
    op->d_k = tensor({});
    op->d_v = tensor({});
    return {op->d_q, op->d_k, op->d_v};
}

/* -- compatibility ------------------------------------------------------- */

static bool is_vector(const tensor_pointer &t, DataType_t type, int64_t n)
{
    return t && t->data_type == type
           && t->dim == std::vector<int64_t>{n, 1, 1, 1}
           && t->stride == std::vector<int64_t>{1, 1, 1, 1};
}

/* Rows of all heads, 16-byte aligned, in the layout of the queries. */
static const char *misfit_of_rows(const attention &op, const tensor_pointer &t)
{
    if (!t || t->data_type != DataType_t::BFLOAT16)
        return "rows that are not bfloat16";
    if (t->dim != op.q->dim)
        return "rows of another shape than the queries";
    if (t->stride.size() != 4 || t->stride[3] != 1
        || t->stride[1] < op.width() || t->stride[1] % 8
        || t->stride[2] < op.heads() * t->stride[1] || t->stride[2] % 8
        || t->stride[0] < op.longest() * t->stride[2])
        return "rows with strides that overlap, or do not lie at 16 bytes";
    if (!is_vector(t->ragged_offset, DataType_t::INT32, op.spans() + 1))
        return "offsets that are not one more int32 than spans";
    return nullptr;
}

static const char *misfit_of_stats(const attention &op)
{
    const int64_t h = op.heads(), s = op.longest();

    if (op.stats->data_type != DataType_t::FLOAT
        || op.stats->dim != std::vector<int64_t>{op.spans(), h, s, 1}
        || op.stats->stride != std::vector<int64_t>{h * s, s, 1, 1}
        || op.stats->ragged_offset)
        return "logarithms that are not packed float";
    if (!op.backward && (!op.generates || !op.stats->output))
        return "logarithms that forward does not put out";
    return nullptr;
}

static const char *misfit_of_dropout(const attention &op)
{
    if (op.dropout < 0 || op.dropout >= 1)
        return "dropout that is not a probability";
    if (op.seed
        && (!is_vector(op.seed, DataType_t::INT64, 1)
            || !is_vector(op.offset, DataType_t::INT64, 1)))
        return "a seed or an offset that is not int64";
    return nullptr;
}

static const char *misfit_of_ids(const attention &op)
{
    std::set<int64_t> seen;

    for (const tensor_pointer &t : op.tensors)
        if (t->uid == 0 || !seen.insert(t->uid).second)
            return "tensors with one id, or none";
    return nullptr;
}

/* The reason a graph is invalid; null if it is valid. */
static const char *misfit_of(const attention &op)
{
    std::vector<tensor_pointer> rows = {op.q, op.k, op.v, op.o};
    std::vector<tensor_pointer> outputs = {op.o};

    if (op.operations != 1)
        return "a graph that is not of one operation";
    if (!op.q || op.q->dim.size() != 4
        || *std::min_element(op.q->dim.begin(), op.q->dim.end()) < 1)
        return "queries of nothing";
    if (op.width() > WIDEST || op.width() % 8)
        return "heads of a width above 128, or that 8 does not divide";
    if (op.backward) {
        outputs = {op.d_q, op.d_k, op.d_v};
        rows.push_back(op.d_o);
        rows.insert(rows.end(), outputs.begin(), outputs.end());
    }
    for (const tensor_pointer &t : rows)
        if (const char *wrong = misfit_of_rows(op, t))
            return wrong;
    for (const tensor_pointer &t : outputs)
        if (!t->output)
            return "rows that are not put out";
    if (!op.padding_mask || !is_vector(op.rows_q, DataType_t::INT32, op.spans())
        || !is_vector(op.rows_k, DataType_t::INT32, op.spans()))
        return "ragged rows without a mask and their numbers";
    if (op.scale <= 0)
        return "scores that are not scaled";
    if (const char *wrong = misfit_of_stats(op))
        return wrong;
    if (const char *wrong = misfit_of_dropout(op))
        return wrong;
    return misfit_of_ids(op);
}

/* -- stages -------------------------------------------------------------- */

static error_object refusal(const char *why)
{
    return {error_code_t::INVALID_VALUE, refuse(why)};
}

/* Advances to the next stage, unless the call is made to fail. */
static error_object advance(attention *op, const char *call, progress from,
                       progress to)
{
    if (is_to_fail(call))
        return {error_code_t::CUDNN_BACKEND_API_FAILED,
                std::string(call) + " fails,\nas was ordered"};
    if (op->reached != from)
        return refusal("calls in another order");
    op->reached = to;
    return {};
}

static bool live(cudnnHandle_t handle)
{
    return handle && !handle->destroyed && handle->has_stream;
}

error_object Graph::validate()
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    const error_object error = advance(op.get(), __func__, DESCRIBED, VALID);

    if (error.is_bad())
        return error;
    if (io_data_type != DataType_t::BFLOAT16
        || intermediate_data_type != DataType_t::FLOAT
        || compute_data_type != DataType_t::FLOAT)
        return refusal("a graph that does not compute in float");
    if (const char *wrong = misfit_of(*op))
        return refusal(wrong);
    return {};
}

error_object Graph::build_operation_graph(cudnnHandle_t handle)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (!live(handle))
        return refusal("a handle that was destroyed, or has no stream");
    op->handle = handle;
    return advance(op.get(), __func__, VALID, BUILT);
}

error_object Graph::create_execution_plans(const std::vector<HeurMode_t> &modes)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (modes.empty())
        return refusal("plans by no heuristics");
    return advance(op.get(), __func__, BUILT, PROPOSED);
}

error_object Graph::check_support(cudnnHandle_t)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    return advance(op.get(), __func__, PROPOSED, SUPPORTED);
}

error_object Graph::build_plans(const cudnnHandle_t &, BuildPlanPolicy_t)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    counts.plans++;
    return advance(op.get(), __func__, SUPPORTED, PLANNED);
}

error_object Graph::get_workspace_size(int64_t &bytes) const
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    const error_object error = advance(op.get(), __func__, PLANNED, PLANNED);

    bytes = error.is_good() ? op->workspace() : 0;
    return error;
}

/* -- numbers ------------------------------------------------------------- */

bool hostcuda_cudnn_keeps(int64_t seed, int64_t offset, float rate,
                          uint64_t at)
{
    uint64_t z = (uint64_t)seed * UINT64_C(0xd1342543de82ef95)
                 + (uint64_t)offset * UINT64_C(0xda942042e4dd58b5) + at;

    z = (z ^ z >> 32) * UINT64_C(0xdaba0b6eb09322e3);
    z = (z ^ z >> 32) * UINT64_C(0xdaba0b6eb09322e3);
    return (float)(z >> 40) >= rate * 16777216.0f;
}

static float rounded(float x)
{
    return __bfloat162float(__float2bfloat16(x));
}

/* A run of a graph, with its pointers. */
struct sdpa_run {
    const attention &op;
    std::map<int64_t, void *> at;

    template <typename T> T *array(const tensor_pointer &t) const
    {
        return (T *)at.at(t->uid);
    }
    /* Row r of a head of a span. */
    __nv_bfloat16 *row(const tensor_pointer &t, int64_t span, int64_t head,
                       int64_t r) const
    {
        return array<__nv_bfloat16>(t)
               + array<int32_t>(t->ragged_offset)[span]
               + head * t->stride[1] + r * t->stride[2];
    }
    float *stat(int64_t span, int64_t head, int64_t r) const
    {
        return array<float>(op.stats)
               + (span * op.heads() + head) * op.longest() + r;
    }
    /* Applies dropout to a probability. */
    float keep(int64_t span, int64_t head, int64_t i, int64_t j) const
    {
        const int64_t s = op.longest();

        if (op.dropout == 0)
            return 1;
        return hostcuda_cudnn_keeps(
                   *array<int64_t>(op.seed), *array<int64_t>(op.offset),
                   op.dropout,
                   (uint64_t)(((span * op.heads() + head) * s + i) * s + j))
                   ? 1 / (1 - op.dropout)
                   : 0;
    }
    float dot(const __nv_bfloat16 *x, const __nv_bfloat16 *y) const
    {
        float sum = 0;

        for (int64_t i = 0; i < op.width(); i++)
            sum += __bfloat162float(x[i]) * __bfloat162float(y[i]);
        return sum;
    }
    void add(float by, const __nv_bfloat16 *x, float *to) const
    {
        for (int64_t i = 0; i < op.width(); i++)
            to[i] += by * __bfloat162float(x[i]);
    }
    void store(const std::vector<float> &x, int64_t r, __nv_bfloat16 *to) const
    {
        for (int64_t i = 0; i < op.width(); i++)
            to[i] = __float2bfloat16(x[(size_t)(r * op.width() + i)]);
    }

    void check() const;
    void forward(int64_t span, int64_t head, int64_t n) const;
    void backward(int64_t span, int64_t head, int64_t n) const;
    void run(void *workspace) const;
};

/* Spans are consecutive, and at most as long as planned. */
void sdpa_run::check() const
{
    const int32_t *const rows = array<int32_t>(op.rows_q);

    for (int64_t i = 0; i < op.spans(); i++) {
        if (rows[i] < 0 || rows[i] > op.longest())
            fault("cuDNN", 0, "a span of %d rows, planned for %d", rows[i],
                  (int)op.longest());
        if (rows[i] != array<int32_t>(op.rows_k)[i])
            fault("cuDNN", 0, "a span of %d queries and %d keys", rows[i],
                  array<int32_t>(op.rows_k)[i]);
        for (const tensor_pointer &t : {op.q, op.o}) {
            const int32_t *const at = array<int32_t>(t->ragged_offset) + i;

            if (at[0] < 0 || at[1] - at[0] != rows[i] * t->stride[2])
                fault("cuDNN", 0, "a span of %d rows from %d to %d", rows[i],
                      at[0], at[1]);
        }
    }
}

void sdpa_run::forward(int64_t span, int64_t head, int64_t n) const
{
    for (int64_t i = 0; i < op.longest(); i++) {
        std::vector<float> s((size_t)n), o((size_t)op.width());
        float most = -INFINITY, sum = 0;

        std::memset(stat(span, head, i), 0xff, sizeof(float));
        if (i >= n)
            continue;
        for (int64_t j = 0; j < n; j++) {
            s[(size_t)j] = op.scale
                           * dot(row(op.q, span, head, i),
                                 row(op.k, span, head, j));
            most = std::max(most, s[(size_t)j]);
        }
        for (float &x : s)
            sum += x = std::exp(x - most);
        for (int64_t j = 0; j < n; j++)
            add(rounded(s[(size_t)j] * keep(span, head, i, j)),
                row(op.v, span, head, j), o.data());
        for (float &x : o)
            x /= sum;
        *stat(span, head, i) = most + std::log(sum);
        store(o, 0, row(op.o, span, head, i));
    }
}

void sdpa_run::backward(int64_t span, int64_t head, int64_t n) const
{
    const size_t width = (size_t)op.width(), all = (size_t)n * width;
    std::vector<float> q(all), k(all), v(all);

    for (int64_t i = 0; i < n; i++) {
        const __nv_bfloat16 *const d_o = row(op.d_o, span, head, i);
        const float delta = dot(d_o, row(op.o, span, head, i));

        for (int64_t j = 0; j < n; j++) {
            const float score = op.scale
                                * dot(row(op.q, span, head, i),
                                      row(op.k, span, head, j));
            const float p = std::exp(score - *stat(span, head, i));
            const float by = keep(span, head, i, j);
            const float d_p = by * dot(d_o, row(op.v, span, head, j));
            const float d_s = rounded(op.scale * p * (d_p - delta));

            add(rounded(by * p), d_o, &v[(size_t)j * width]);
            add(d_s, row(op.k, span, head, j), &q[(size_t)i * width]);
            add(d_s, row(op.q, span, head, i), &k[(size_t)j * width]);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        store(q, i, row(op.d_q, span, head, i));
        store(k, i, row(op.d_k, span, head, i));
        store(v, i, row(op.d_v, span, head, i));
    }
}

/* A NaN that differs from the fill of new memory. */
static void spoil(void *workspace, int64_t bytes)
{
    std::fill_n((uint16_t *)workspace, bytes / 2, (uint16_t)0xffc0);
}

void sdpa_run::run(void *workspace) const
{
    check();
    spoil(workspace, op.workspace());
    for (int64_t span = 0; span < op.spans(); span++)
        for (int64_t head = 0; head < op.heads(); head++)
            if (op.backward)
                backward(span, head, array<int32_t>(op.rows_q)[span]);
            else
                forward(span, head, array<int32_t>(op.rows_q)[span]);
    spoil(workspace, op.workspace());
}

/* -- execute ------------------------------------------------------------- */

/* The pointers that a graph needs; false: some are missing or superfluous. */
static bool pointers_of(const attention &op,
                        const std::unordered_map<int64_t, void *> &given,
                        std::map<int64_t, void *> *to)
{
    for (const tensor_pointer &t : op.tensors) {
        const auto found = given.find(t->uid);

        if (found == given.end() || !in_device_memory(found->second)
            || (uintptr_t)found->second % (t->data_type == DataType_t::INT64
                                               ? 8 : 16))
            return false;
        (*to)[t->uid] = found->second;
    }
    return to->size() == given.size();
}

error_object Graph::execute(cudnnHandle_t handle,
                       std::unordered_map<int64_t, void *> &pointers,
                       void *workspace) const
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    const error_object error = advance(op.get(), __func__, PLANNED, PLANNED);
    const std::shared_ptr<attention> mine = op;
    std::map<int64_t, void *> at;
    std::vector<const void *> used = {workspace};

    if (error.is_bad())
        return error;
    if (!live(handle) || handle != op->handle)
        return refusal("a handle that was destroyed, or is another one");
    if (!pointers_of(*op, pointers, &at))
        return refusal("pointers that are missing, too many, or misaligned");
    if (!in_device_memory(workspace) || (uintptr_t)workspace % 256)
        return refusal("a workspace that is missing or misaligned");
    for (const auto &each : at)
        used.push_back(each.second);
    counts.runs++;
    op->queued++;
    if (enqueue(handle->stream, "attention by cuDNN",
                [mine, at, workspace] {
                    mine->queued--;
                    sdpa_run{*mine, at}.run(workspace);
                },
                used)) {
        op->queued--;
        return {error_code_t::CUDNN_BACKEND_API_FAILED, "execution fails"};
    }
    return {};
}
