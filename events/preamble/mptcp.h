/* SPDX-License-Identifier: GPL-2.0 */
#include <net/mptcp/protocol.h>

/* Static where it is: it costs the event that has it. */
unsigned int mptcp_inq_hint(const struct sock *sk);
