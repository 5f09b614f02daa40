/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/erofs/internal.h>
