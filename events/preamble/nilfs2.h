/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/nilfs2/nilfs.h>
#include <fs/nilfs2/segment.h>
