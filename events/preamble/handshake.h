/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ipv6.h>
#include <net/inet_sock.h>
#include <net/sock.h>
#include <net/handshake.h>
#include <net/tls_prot.h>
#include <net/handshake/handshake.h>
