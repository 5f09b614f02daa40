/* SPDX-License-Identifier: GPL-2.0 */
#include <rdma/ib_verbs.h>
#include <linux/sunrpc/svc_rdma.h>
#include <net/sunrpc/xprtrdma/xprt_rdma.h>
