/* SPDX-License-Identifier: GPL-2.0 */
#include <asm/xen/hypercall.h>
#include <xen/interface/xen.h>

const char *xen_hypercall_name(u32 op);
