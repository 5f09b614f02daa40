/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/xfs/xfs_trace.c>
