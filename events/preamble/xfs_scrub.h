/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/xfs/scrub/trace.c>
