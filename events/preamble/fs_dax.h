/* SPDX-License-Identifier: GPL-2.0 */
#if __has_include(<linux/pfn_t.h>)
#include <linux/pfn_t.h>
#endif
