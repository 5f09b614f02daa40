/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/net/hyperv/netvsc_trace.c>
