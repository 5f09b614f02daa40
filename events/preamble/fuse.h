/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/fuse/fuse_i.h>
#if __has_include(<fs/fuse/fuse_dev_i.h>)
#include <fs/fuse/fuse_dev_i.h>
#endif
