/* SPDX-License-Identifier: GPL-2.0 */
#include <trace/events/sock.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
