/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/platform/surface/aggregator/bus.h>
#include <drivers/platform/surface/aggregator/controller.h>
