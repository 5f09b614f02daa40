/* SPDX-License-Identifier: GPL-2.0 */
#include <media/videobuf2-core.h>
