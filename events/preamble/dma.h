/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/dma-direction.h>
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
