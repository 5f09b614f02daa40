/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/skbuff.h>
#include <linux/l2tp.h>
#include <net/l2tp/l2tp_core.h>
