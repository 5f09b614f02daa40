/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/verity/fsverity_private.h>
