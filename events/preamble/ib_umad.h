/* SPDX-License-Identifier: GPL-2.0 */
#include <rdma/ib_mad.h>
#include <drivers/infiniband/core/core_priv.h>
