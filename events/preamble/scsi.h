/* SPDX-License-Identifier: GPL-2.0 */
#include <scsi/scsi_cmnd.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_eh.h>
#include <scsi/scsi_host.h>
#include <linux/trace_seq.h>
#include <drivers/scsi/scsi_priv.h>
