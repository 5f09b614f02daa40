// SPDX-License-Identifier: GPL-2.0
/* rtrace_frames.c with another frame. */
#define ROOM 512
#include "rtrace_frames.c"
