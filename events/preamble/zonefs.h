/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/blkdev.h>
#include <linux/iomap.h>
#include <fs/zonefs/zonefs.h>
