/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/cpumask.h>
#include <linux/hyperv.h>
#include <asm/mshyperv.h>
#include <asm/tlbflush.h>
