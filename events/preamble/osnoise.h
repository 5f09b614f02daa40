/* SPDX-License-Identifier: GPL-2.0 */
#include <trace/events/irq.h>
