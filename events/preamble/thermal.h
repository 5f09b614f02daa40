/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/thermal/thermal_core.h>
