/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/nvme/target/nvmet.h>
