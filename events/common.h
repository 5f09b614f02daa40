/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Headers that most others include. They are compiled once, because the compiler spends half of its time on them.
 */
#include <linux/compiler-version.h>
#include <linux/kconfig.h>
#include <linux/compiler_types.h>

#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/trace_events.h>
#include <net/tcp.h>
