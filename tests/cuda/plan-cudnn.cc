/*
 * plan-cudnn.cc - cuDNN's attention on unpadded rows, planned and compiled for
 * a GPU that is not here, by the headers of cudnn-frontend.
 *
 *     plan-cudnn forward|backward ARCH DROPOUT
 *
 * for example `backward 90 0.1`.  What stands for the GPU is in plan-cudnn.h;
 * so is what a success is.  The backward operation becomes a graph of products
 * and reductions here: as one operation of its own, plan-cudnn.c, cuDNN 9.19
 * does not take it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cudnn_frontend.h>

#include <cstdlib>
#include <string>

#include "plan-cudnn.h"

namespace fe = cudnn_frontend;
typedef std::shared_ptr<fe::graph::Tensor_attributes> tensor;

static void need(fe::error_t error, const char *what)
{
    if (error.is_good())
        return;
    printf("%s: %s\n", what, error.get_message().c_str());
    exit(1);
}

static tensor vector(fe::graph::Graph &graph, const char *name, int64_t n)
{
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_dim({n, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(fe::DataType_t::INT32));
}

/* Spans, heads, rows, columns, of which rows lie `parts` heads apart. */
static void lay(tensor t, int64_t parts, tensor offsets)
{
    const int64_t row = parts * HEADS * WIDTH;

    t->set_dim({SPANS, HEADS, LONGEST, WIDTH})
        .set_stride({LONGEST * row, WIDTH, row, 1})
        .set_ragged_offset(offsets);
}

static tensor rows(fe::graph::Graph &graph, const char *name, int64_t parts,
                   tensor offsets)
{
    const tensor t = graph.tensor(fe::graph::Tensor_attributes()
                                      .set_name(name)
                                      .set_dim({1, 1, 1, 1})
                                      .set_stride({1, 1, 1, 1}));

    lay(t, parts, offsets);
    return t;
}

/* Of one head's row: the logarithm of the sum of exponentials. */
static void lay_stats(tensor t)
{
    t->set_dim({SPANS, HEADS, LONGEST, 1})
        .set_stride({HEADS * LONGEST, LONGEST, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
}

static tensor scalar(fe::graph::Graph &graph, const char *name)
{
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_dim({1, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(fe::DataType_t::INT64));
}

struct inputs {
    tensor in, out; /* offsets of spans: of q, k and v, and of the output */
    tensor q, k, v, length_q, length_kv, seed, offset;
};

static inputs inputs_of(fe::graph::Graph &graph)
{
    inputs i;

    i.in = vector(graph, "in", SPANS + 1);
    i.out = vector(graph, "out", SPANS + 1);
    i.q = rows(graph, "q", 3, i.in);
    i.k = rows(graph, "k", 3, i.in);
    i.v = rows(graph, "v", 3, i.in);
    i.length_q = vector(graph, "rows of q", SPANS);
    i.length_kv = vector(graph, "rows of k and v", SPANS);
    i.seed = scalar(graph, "seed");
    i.offset = scalar(graph, "offset");
    return i;
}

/* The options that forward and backward share. */
template <typename T> static T options_of(const inputs &i, float dropout)
{
    T options = T().set_name("attention")
                    .set_padding_mask(true)
                    .set_attn_scale(0.125f)
                    .set_seq_len_q(i.length_q)
                    .set_seq_len_kv(i.length_kv);

    if (dropout > 0.0f)
        options.set_dropout(dropout, i.seed, i.offset);
    return options;
}

static void forward(fe::graph::Graph &graph, float dropout)
{
    const inputs i = inputs_of(graph);
    auto options = options_of<fe::graph::SDPA_attributes>(i, dropout);
    const auto [out, stats]
        = graph.sdpa(i.q, i.k, i.v, options.set_generate_stats(true));

    out->set_output(true);
    lay(out, 1, i.out);
    stats->set_output(true);
    lay_stats(stats);
}

static void backward(fe::graph::Graph &graph, float dropout)
{
    const inputs i = inputs_of(graph);
    const tensor out = rows(graph, "o", 1, i.out);
    const tensor d_out = rows(graph, "do", 1, i.out);
    const tensor stats = scalar(graph, "stats");

    lay_stats(stats);
    for (const tensor &d : graph.sdpa_backward(
             i.q, i.k, i.v, out, d_out, stats,
             options_of<fe::graph::SDPA_backward_attributes>(i, dropout))) {
        d->set_output(true);
        lay(d, 3, i.in);
    }
}

static std::shared_ptr<fe::DeviceProperties> device(int arch)
{
    const auto properties = std::make_shared<fe::DeviceProperties>();
    char text[DEVICE_TEXT];

    plan_device(text, arch);
    need(properties->deserialize(
             std::vector<uint8_t>(text, text + strlen(text))), "device");
    return properties;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 64;

    const int arch = atoi(argv[2]);
    fe::graph::Graph graph;
    int good = 0;

    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    graph.set_sm_version(arch);
    graph.set_device_properties(device(arch));
    (strcmp(argv[1], "backward") ? forward : backward)(
        graph, strtof(argv[3], nullptr));
    need(graph.validate(), "graph");
    need(graph.build_operation_graph(), "operations");
    need(graph.create_execution_plans({fe::HeurMode_t::A}), "heuristics");
    for (int64_t i = 0; i < graph.get_execution_plan_count(); i++) {
        fe::error_t error = graph.build_plan_at_index(i);
        const std::string why = error.get_message();

        good += error.is_good() || plan_compiled(why.c_str());
    }
    printf("%s, sm_%d, dropout %s: %d of %d plans compiled\n", argv[1], arch,
           argv[3], good, (int)graph.get_execution_plan_count());
    return !good;
}
