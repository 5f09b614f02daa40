/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/backing-dev.h>
#include <linux/writeback.h>
#include <linux/pagemap.h>
#define rtrace_without_global_dirty_state 1
