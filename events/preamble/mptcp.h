/* SPDX-License-Identifier: GPL-2.0 */
#include <net/mptcp/protocol.h>

/* Static in the kernel: without it the event that uses it is left out. */
unsigned int mptcp_inq_hint(const struct sock *sk);
