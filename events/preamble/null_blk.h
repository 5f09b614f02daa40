/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/block/null_blk/null_blk.h>
