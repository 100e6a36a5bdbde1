/*
 * host_device.h - mark functions that both the host and GPU kernels call.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_HOST_DEVICE_H
#define TR_MODEL_HOST_DEVICE_H

#ifdef __CUDACC__
#define TR_HOST_DEVICE __host__ __device__
#else
#define TR_HOST_DEVICE
#endif

#endif /* TR_MODEL_HOST_DEVICE_H */
