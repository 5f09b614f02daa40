/* SPDX-License-Identifier: GPL-2.0 */
#include <net/xdp.h>
#include <linux/filter.h>
