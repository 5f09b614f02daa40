/* SPDX-License-Identifier: GPL-2.0 */
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
