/* SPDX-License-Identifier: GPL-2.0 */
#include <rdma/ib_verbs.h>
#include <linux/sunrpc/rpc_rdma.h>
