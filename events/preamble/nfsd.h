/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/nfsd/trace.c>
