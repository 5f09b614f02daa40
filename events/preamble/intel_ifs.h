/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/platform/x86/intel/ifs/ifs.h>
