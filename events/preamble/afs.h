/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/afs/internal.h>
