/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/ip.h>
