/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/dma-fence.h>
