/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/netfs.h>
#include <linux/fscache.h>
