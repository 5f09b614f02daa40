/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/infiniband/core/cm_trace.c>
