/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/device.h>
#include <linux/firewire.h>
#include <linux/firewire-constants.h>
#include <drivers/firewire/packet-header-definitions.h>
#include <drivers/firewire/phy-packet-definitions.h>
