/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/infiniband/core/cma_trace.c>
