/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/spi/spi.h>
