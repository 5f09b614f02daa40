/* SPDX-License-Identifier: GPL-2.0 */
#include <fs/ceph/super.h>
#include <fs/ceph/mds_client.h>
