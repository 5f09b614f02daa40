/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/md/bcache/trace.c>
