// SPDX-License-Identifier: GPL-2.0
#include "../../../events/text.c"
