/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/ext4/ext4.h>
#include <fs/ext4/ext4_extents.h>
#include <fs/ext4/mballoc.h>
#include <fs/ext4/fsmap.h>
