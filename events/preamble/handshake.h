/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/in.h>
#include <linux/in6.h>
#include <net/sock.h>
#include <net/handshake.h>
