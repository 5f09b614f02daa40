/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
