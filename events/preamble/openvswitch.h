/* SPDX-License-Identifier: GPL-2.0 */
#include <net/openvswitch/openvswitch_trace.c>
