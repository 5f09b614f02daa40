/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/nfs/nfs4trace.c>
