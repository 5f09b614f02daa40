/* SPDX-License-Identifier: GPL-2.0 */
#include <sound/soc.h>
