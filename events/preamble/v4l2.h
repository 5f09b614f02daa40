/* SPDX-License-Identifier: GPL-2.0 */
#include <media/videobuf2-v4l2.h>
#include <media/v4l2-common.h>
#include <media/v4l2-fh.h>
