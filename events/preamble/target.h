/* SPDX-License-Identifier: GPL-2.0 */
#include <target/target_core_base.h>
#include <target/target_core_fabric.h>
#include <drivers/target/target_core_internal.h>
