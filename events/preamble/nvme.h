/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/blk-integrity.h>
#include <linux/blk-mq.h>
