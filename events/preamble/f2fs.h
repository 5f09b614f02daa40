/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/f2fs_fs.h>
#include <fs/f2fs/f2fs.h>
#include <fs/f2fs/node.h>
#include <fs/f2fs/segment.h>
