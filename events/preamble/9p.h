/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/types.h>
#include <linux/uidgid.h>
#include <net/9p/9p.h>
#include <net/9p/client.h>
