/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/cxl/cxl.h>
#include <drivers/cxl/cxlmem.h>
#define rtrace_without_cxl_poison 1
