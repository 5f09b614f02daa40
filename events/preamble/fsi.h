/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/fsi.h>
#include <drivers/fsi/fsi-master.h>
#include <drivers/fsi/fsi-slave.h>
