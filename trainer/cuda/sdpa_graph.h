/*
 * sdpa_graph.h - forward and backward of attention as cudnn-frontend graphs.
 *
 * The trainer runs these graphs; tests/cuda/plan-cudnn.cc plans them for GPUs
 * that are absent.
 *
 * Backward may add to a query's gradient in any order: cuDNN's deterministic
 * mode does not support ragged rows on sm_80 or dropout on sm_100, and on sm_90
 * needs memory for longest x longest numbers per span and head.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_SDPA_GRAPH_H
#define TR_CUDA_SDPA_GRAPH_H

/* Plans are not serialised, so no JSON parser is needed. */
#ifndef CUDNN_FRONTEND_SKIP_JSON_LIB
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#endif
#include <cstring> /* missing in cudnn_frontend.h without JSON */

#include <cudnn_frontend.h>

#include <cmath>
#include <cstdint>
#include <memory>

namespace fe = cudnn_frontend;

/* The key of a plan. */
struct tr_sdpa_shape {
    uint32_t spans;   /* bucket sizes, like `longest`: see sdpa.h */
    uint32_t longest;
    uint32_t heads;
    uint32_t width;   /* width of a head */
    uint32_t dropout; /* rate times 2^32; 0: no dropout */
};

/* Tensor IDs, used to pass pointers to a graph. */
enum tr_sdpa_uid : int64_t {
    TR_SDPA_IN = 1, /* span offsets in queries, keys and values */
    TR_SDPA_OUT,    /* span offsets in the output */
    TR_SDPA_ROWS_Q, /* span lengths, as queries */
    TR_SDPA_ROWS_K, /* span lengths, as keys */
    TR_SDPA_Q,
    TR_SDPA_K,
    TR_SDPA_V,
    TR_SDPA_O,
    TR_SDPA_STATS, /* log-sum-exp */
    TR_SDPA_SEED,
    TR_SDPA_OFFSET,
    TR_SDPA_DO,
    TR_SDPA_DQ,
    TR_SDPA_DK,
    TR_SDPA_DV
};

typedef std::shared_ptr<fe::graph::Tensor_attributes> tr_sdpa_tensor;

static inline tr_sdpa_tensor
tr_sdpa_integers(fe::graph::Graph &graph, tr_sdpa_uid uid,
                 fe::DataType_t type, int64_t n)
{
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_uid(uid)
                            .set_dim({n, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(type));
}

/*
 * Lays out a tensor of spans x heads x rows x columns.  A row of the batch
 * holds parts x heads x width numbers.
 */
static inline void tr_sdpa_lay(fe::graph::Tensor_attributes &t,
                               const tr_sdpa_shape &s, tr_sdpa_uid uid,
                               int64_t parts, tr_sdpa_tensor offsets)
{
    const int64_t row = parts * s.heads * s.width;

    t.set_uid(uid)
        .set_dim({s.spans, s.heads, s.longest, s.width})
        .set_stride({s.longest * row, s.width, row, 1})
        .set_data_type(fe::DataType_t::BFLOAT16)
        .set_ragged_offset(offsets);
}

static inline tr_sdpa_tensor
tr_sdpa_rows(fe::graph::Graph &graph, const tr_sdpa_shape &s,
             tr_sdpa_uid uid, int64_t parts, tr_sdpa_tensor offsets)
{
    fe::graph::Tensor_attributes t;

    tr_sdpa_lay(t, s, uid, parts, offsets);
    return graph.tensor(t);
}

/* On sm_80, backward does not support ragged statistics. */
static inline void tr_sdpa_lay_stats(fe::graph::Tensor_attributes &t,
                                     const tr_sdpa_shape &s)
{
    t.set_uid(TR_SDPA_STATS)
        .set_dim({s.spans, s.heads, s.longest, 1})
        .set_stride({(int64_t)s.heads * s.longest, s.longest, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
}

/* Inputs of both directions. */
struct tr_sdpa_inputs {
    tr_sdpa_tensor in, out, q, k, v;
};

static inline tr_sdpa_inputs tr_sdpa_inputs_of(fe::graph::Graph &graph,
                                               const tr_sdpa_shape &s)
{
    const auto type = fe::DataType_t::INT32;
    tr_sdpa_inputs i;

    i.in = tr_sdpa_integers(graph, TR_SDPA_IN, type, s.spans + 1);
    i.out = tr_sdpa_integers(graph, TR_SDPA_OUT, type, s.spans + 1);
    i.q = tr_sdpa_rows(graph, s, TR_SDPA_Q, 3, i.in);
    i.k = tr_sdpa_rows(graph, s, TR_SDPA_K, 3, i.in);
    i.v = tr_sdpa_rows(graph, s, TR_SDPA_V, 3, i.in);
    return i;
}

/* Options of both directions. */
template <typename T>
static T tr_sdpa_options(fe::graph::Graph &graph, const tr_sdpa_shape &s)
{
    const auto type = fe::DataType_t::INT32, wide = fe::DataType_t::INT64;
    T options;

    options.set_name("attention")
        .set_padding_mask(true)
        .set_attn_scale(1 / std::sqrt((float)s.width))
        .set_seq_len_q(
            tr_sdpa_integers(graph, TR_SDPA_ROWS_Q, type, s.spans))
        .set_seq_len_kv(
            tr_sdpa_integers(graph, TR_SDPA_ROWS_K, type, s.spans));
    if (s.dropout)
        options.set_dropout(
            (float)s.dropout / 4294967296.0f,
            tr_sdpa_integers(graph, TR_SDPA_SEED, wide, 1),
            tr_sdpa_integers(graph, TR_SDPA_OFFSET, wide, 1));
    return options;
}

static inline void tr_sdpa_forward(fe::graph::Graph &graph,
                                   const tr_sdpa_shape &s)
{
    const tr_sdpa_inputs i = tr_sdpa_inputs_of(graph, s);
    auto options = tr_sdpa_options<fe::graph::SDPA_attributes>(graph, s);
    const auto [out, stats]
        = graph.sdpa(i.q, i.k, i.v, options.set_generate_stats(true));

    tr_sdpa_lay(out->set_output(true), s, TR_SDPA_O, 1, i.out);
    tr_sdpa_lay_stats(stats->set_output(true), s);
}

static inline void tr_sdpa_backward(fe::graph::Graph &graph,
                                    const tr_sdpa_shape &s)
{
    const tr_sdpa_inputs i = tr_sdpa_inputs_of(graph, s);
    const tr_sdpa_tensor o = tr_sdpa_rows(graph, s, TR_SDPA_O, 1, i.out);
    const tr_sdpa_tensor d_o
        = tr_sdpa_rows(graph, s, TR_SDPA_DO, 1, i.out);
    fe::graph::Tensor_attributes stats;

    tr_sdpa_lay_stats(stats, s);
    const auto [d_q, d_k, d_v] = graph.sdpa_backward(
        i.q, i.k, i.v, o, d_o, graph.tensor(stats),
        tr_sdpa_options<fe::graph::SDPA_backward_attributes>(graph, s));

    tr_sdpa_lay(d_q->set_output(true), s, TR_SDPA_DQ, 3, i.in);
    tr_sdpa_lay(d_k->set_output(true), s, TR_SDPA_DK, 3, i.in);
    tr_sdpa_lay(d_v->set_output(true), s, TR_SDPA_DV, 3, i.in);
}

/* Builds attention in an empty graph. */
static inline void tr_sdpa_graph(fe::graph::Graph &graph,
                                 const tr_sdpa_shape &s, bool backward)
{
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (backward)
        tr_sdpa_backward(graph, s);
    else
        tr_sdpa_forward(graph, s);
}

#endif /* TR_CUDA_SDPA_GRAPH_H */
