/*
 * cudnn_frontend.h - replaces the header of cudnn-frontend: graphs of one
 * operation, attention on ragged rows, forward or backward.
 *
 * Names, types and arguments are those of NVIDIA's header.  cudnn.cc implements
 * the calls, and refuses invalid ones.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_CUDNN_FRONTEND_H
#define HOSTCUDA_CUDNN_FRONTEND_H

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cudnn.h"

namespace cudnn_frontend {

enum class error_code_t { OK, INVALID_VALUE, CUDNN_BACKEND_API_FAILED };

struct [[nodiscard]] error_object {
    error_code_t code = error_code_t::OK;
    std::string err_msg;

    error_code_t get_code() const { return code; }
    std::string get_message() { return err_msg; }
    bool is_good() const { return code == error_code_t::OK; }
    bool is_bad() const { return !is_good(); }
};
typedef error_object error_t;

enum class DataType_t { NOT_SET, FLOAT, BFLOAT16, INT32, INT64 };
enum class HeurMode_t { A, B, FALLBACK };
enum class BuildPlanPolicy_t { HEURISTICS_CHOICE, ALL };

namespace graph {

/* Setters named after their attributes; the first parameter is the class. */
#define HOSTCUDA_SET(C, type, name, ...)                                      \
    C &set_##name(type value)                                                 \
    {                                                                         \
        name = value;                                                         \
        return *this;                                                         \
    }                                                                         \
    __VA_ARGS__ name

class Tensor_attributes {
public:
    typedef std::shared_ptr<Tensor_attributes> pointer;

    HOSTCUDA_SET(Tensor_attributes, const std::string &, name, std::string);
    HOSTCUDA_SET(Tensor_attributes, int64_t, uid, int64_t) = 0;
    HOSTCUDA_SET(Tensor_attributes, DataType_t, data_type, DataType_t)
        = DataType_t::NOT_SET;
    HOSTCUDA_SET(Tensor_attributes, const std::vector<int64_t> &, dim,
                 std::vector<int64_t>);
    HOSTCUDA_SET(Tensor_attributes, const std::vector<int64_t> &, stride,
                 std::vector<int64_t>);
    HOSTCUDA_SET(Tensor_attributes, const pointer &, ragged_offset, pointer);
    HOSTCUDA_SET(Tensor_attributes, bool, output, bool) = false;
};

typedef Tensor_attributes::pointer tensor_pointer;

/* For both directions; T is the class of one. */
template <typename T> class sdpa_options {
public:
    T &set_name(const std::string &value) { return name = value, self(); }
    T &set_padding_mask(bool value) { return padding_mask = value, self(); }
    T &set_attn_scale(float value) { return attn_scale = value, self(); }
    T &set_seq_len_q(tensor_pointer value) { return rows_q = value, self(); }
    T &set_seq_len_kv(tensor_pointer value) { return rows_k = value, self(); }
    T &set_dropout(float rate, tensor_pointer s, tensor_pointer o)
    {
        dropout = rate;
        seed = s;
        offset = o;
        return self();
    }

    std::string name;
    bool padding_mask = false;
    float attn_scale = 0;
    tensor_pointer rows_q, rows_k, seed, offset;
    float dropout = 0;

private:
    T &self() { return static_cast<T &>(*this); }
};

class SDPA_attributes : public sdpa_options<SDPA_attributes> {
public:
    HOSTCUDA_SET(SDPA_attributes, bool, generate_stats, bool) = false;
};

class SDPA_backward_attributes
    : public sdpa_options<SDPA_backward_attributes> {
};

struct attention; /* cudnn.cc */

class Graph {
public:
    Graph();
    ~Graph();
    Graph(const Graph &) = delete;

    HOSTCUDA_SET(Graph, DataType_t, io_data_type, DataType_t)
        = DataType_t::NOT_SET;
    HOSTCUDA_SET(Graph, DataType_t, intermediate_data_type, DataType_t)
        = DataType_t::NOT_SET;
    HOSTCUDA_SET(Graph, DataType_t, compute_data_type, DataType_t)
        = DataType_t::NOT_SET;

    tensor_pointer tensor(const Tensor_attributes &t);
    std::array<tensor_pointer, 2> sdpa(tensor_pointer q, tensor_pointer k,
                                       tensor_pointer v,
                                       SDPA_attributes options);
    std::array<tensor_pointer, 3>
    sdpa_backward(tensor_pointer q, tensor_pointer k, tensor_pointer v,
                  tensor_pointer o, tensor_pointer d_o, tensor_pointer stats,
                  SDPA_backward_attributes options);

    /* One after the other. */
    error_t validate();
    error_t build_operation_graph(cudnnHandle_t handle);
    error_t create_execution_plans(const std::vector<HeurMode_t> &modes);
    error_t check_support(cudnnHandle_t handle);
    error_t build_plans(const cudnnHandle_t &handle,
                        BuildPlanPolicy_t policy
                        = BuildPlanPolicy_t::HEURISTICS_CHOICE);
    error_t get_workspace_size(int64_t &bytes) const;
    error_t execute(cudnnHandle_t handle,
                    std::unordered_map<int64_t, void *> &pointers,
                    void *workspace) const;

private:
    std::shared_ptr<attention> op;
};

#undef HOSTCUDA_SET

} // namespace graph
} // namespace cudnn_frontend

#endif /* HOSTCUDA_CUDNN_FRONTEND_H */
