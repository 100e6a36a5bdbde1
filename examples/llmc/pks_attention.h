/*
 * pks_attention.h - the sequences of a batch in llm.c's cudnn_att.cpp, which
 * includes this file after its enum UIDs.  docs/llmc.md describes its use.
 *
 * Attention is over n sequences of at most T tokens instead of B rows.  cuDNN
 * gets the length of each sequence and, for ragged tensors, its offset.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PKS_ATTENTION_H
#define PKS_ATTENTION_H

#include <initializer_list>
#include <memory>
#include <unordered_map>
#include <vector>

typedef std::shared_ptr<fe::graph::Tensor_attributes> PksTensor;

/* The arrays in device memory, each of pks_pitch ints. */
enum { PKS_UID = 100, PKS_LENGTHS = 0, PKS_QKV, PKS_O, PKS_STATS, PKS_ARRAYS };
static int *pks_arrays = NULL;
static size_t pks_pitch = 0;
static int pks_num_seqs = 0;

/* Copies the boundaries of a batch to the device. */
void attention_set_sequences(const int *cu, int n, int NH, int C)
{
    const size_t pitch = (size_t)(n / 32 + 1) * 32;
    std::vector<int> host(PKS_ARRAYS * pitch);

    for (int i = 0; i <= n; i++) {
        host[PKS_LENGTHS * pitch + i] = i < n ? cu[i + 1] - cu[i] : 0;
        host[PKS_QKV * pitch + i] = 3 * C * cu[i];
        host[PKS_O * pitch + i] = C * cu[i];
        host[PKS_STATS * pitch + i] = NH * cu[i];
    }
    if (pitch != pks_pitch) {
        cudaCheck(cudaFree(pks_arrays));
        cudaCheck(cudaMalloc((void **)&pks_arrays,
                             host.size() * sizeof(int)));
    }
    cudaCheck(cudaMemcpy(pks_arrays, host.data(), host.size() * sizeof(int),
                         cudaMemcpyHostToDevice));
    pks_num_seqs = n;
    pks_pitch = pitch;
}

static PksTensor pks_tensor(fe::graph::Graph &graph, int array, int n)
{
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_uid(PKS_UID + array)
                            .set_dim({n, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(fe::DataType_t::INT32));
}

/* Limits attention to the length of each of n sequences. */
template <typename Options>
static void pks_mask(fe::graph::Graph &graph, int n, Options &options)
{
    const PksTensor lengths = pks_tensor(graph, PKS_LENGTHS, n);

    options.set_padding_mask(true).set_seq_len_q(lengths).set_seq_len_kv(
        lengths);
}

/* Gives tensors the offsets of n sequences. */
static void pks_ragged(fe::graph::Graph &graph, int array, int n,
                       std::initializer_list<PksTensor> tensors)
{
    const PksTensor offsets = pks_tensor(graph, array, n + 1);

    for (const PksTensor &tensor : tensors)
        tensor->set_ragged_offset(offsets);
}

/* Adds the arrays to the pointers that a graph is executed with. */
static void pks_add_pointers(std::unordered_map<int64_t, void *> &pointers)
{
    for (int i = 0; i < PKS_ARRAYS; i++)
        pointers[PKS_UID + i] = pks_arrays + i * pks_pitch;
}

#endif
