/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/mm.h>
#include <linux/ras.h>
