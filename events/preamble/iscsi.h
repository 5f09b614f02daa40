/* SPDX-License-Identifier: GPL-2.0 */
#include <scsi/libiscsi.h>
#include <scsi/scsi_transport_iscsi.h>
