/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
