/*
 * plan-cudnn.cc - the trainer's graphs of attention, planned and compiled by
 * cuDNN for a GPU that need not be present.
 *
 *     plan-cudnn ARCH forward|backward SPANS LONGEST HEADS WIDTH DROPOUT
 *
 * for example `90 backward 64 512 12 64 0.1`.  A description in JSON (cuDNN 9.8
 * and later) replaces the GPU, so that no handle is needed.  cuDNN still needs
 * a libcuda.so.1: the toolkit's stub will do, on LD_LIBRARY_PATH under that
 * name.  Heuristics choose engines and check that they support the graph; then
 * plans are compiled.  Success here is a failure to load the compiled code,
 * error 34 of the stub.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/sdpa_graph.h"

#include <cstdio>
#include <cstdlib>
#include <string>

static void need(fe::error_t error, const char *what)
{
    if (error.is_good())
        return;
    printf("%s: %s\n", what, error.get_message().c_str());
    exit(1);
}

/* A100, H100 and B200, by architecture. */
static std::shared_ptr<fe::DeviceProperties> device(int arch)
{
    const auto properties = std::make_shared<fe::DeviceProperties>();
    char text[1000];

    snprintf(text, sizeof text,
             "{\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,"
             "\"deviceName\":\"none\",\"maxGridSize\":[2147483647,65535,65535],"
             "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
             "\"multiProcessorCount\":%d,\"warpSize\":32,"
             "\"maxSharedMemoryPerBlock\":49152,"
             "\"maxSharedMemoryPerBlockOptin\":%d,"
             "\"reservedSharedMemoryPerBlock\":1024,"
             "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
             "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
             "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
             "\"totalGlobalMem\":85000000000,\"smClockRateKHz\":1980000,"
             "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800}",
             10 * arch, arch < 90 ? 108 : arch < 100 ? 132 : 148,
             arch < 90 ? 166912 : 232448);
    need(properties->deserialize(
             std::vector<uint8_t>(text, text + strlen(text))), "device");
    return properties;
}

/* True if it compiles, and fails only when its code is loaded. */
static bool is_compiled(fe::error_t error)
{
    const std::string why = error.get_message();

    return error.is_good()
           || why.find("cuLibraryLoadData returned error  (34)")
                  != std::string::npos
           || why.find("EXECUTION_FAILED_CUDA_DRIVER") != std::string::npos;
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 64;

    const int arch = atoi(argv[1]);
    const auto number = [&](int i) { return (uint32_t)atoi(argv[i]); };
    const tr_sdpa_shape shape
        = {number(3), number(4), number(5), number(6),
           (uint32_t)(atof(argv[7]) * 4294967296.0)};
    fe::graph::Graph graph;
    int64_t good = 0, all;

    graph.set_sm_version(arch);
    graph.set_device_properties(device(arch));
    tr_sdpa_graph(graph, shape, strcmp(argv[2], "backward") == 0);
    need(graph.validate(), "graph");
    need(graph.build_operation_graph(), "operations");
    need(graph.create_execution_plans({fe::HeurMode_t::A}), "heuristics");
    all = graph.get_execution_plan_count();
    for (int64_t i = 0; i < all; i++)
        good += is_compiled(graph.build_plan_at_index(i));
    printf("sm_%d: %d of %d plans compiled\n", arch, (int)good, (int)all);
    return good == 0 || good < all;
}
