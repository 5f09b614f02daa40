/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/interrupt.h>
#include <drivers/bus/mhi/host/internal.h>
