/* SPDX-License-Identifier: GPL-2.0 */
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <linux/rtnetlink.h>

/* Static in the kernel: the error for a packet, by the type of its route. */
static inline int ip6_rt_type_to_error(u8 type)
{
	switch (type) {
	case RTN_UNREACHABLE:
		return -EHOSTUNREACH;
	case RTN_PROHIBIT:
		return -EACCES;
	case RTN_THROW:
		return -EAGAIN;
	case RTN_BLACKHOLE:
	case RTN_NAT:
	case RTN_XRESOLVE:
		return -EINVAL;
	default:
		return 0;
	}
}
