/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/kasan.h>
#include <linux/mm.h>
#include <linux/reciprocal_div.h>
#include <linux/slab.h>
#define rtrace_without_mm_page_alloc_extfrag 1
#define rtrace_without_rss_stat 1
