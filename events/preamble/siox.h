/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/siox/siox.h>
