/* SPDX-License-Identifier: GPL-2.0 */
#include <net/tipc/trace.c>
