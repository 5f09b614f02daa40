/* SPDX-License-Identifier: GPL-2.0 */
#include <net/addrconf.h>
#include <net/neighbour.h>
