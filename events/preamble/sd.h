/* SPDX-License-Identifier: GPL-2.0 */
#include <scsi/scsi_cmnd.h>
#include <drivers/scsi/sd.h>
