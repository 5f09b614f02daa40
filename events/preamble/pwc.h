/* SPDX-License-Identifier: GPL-2.0 */
#include <drivers/media/usb/pwc/pwc.h>
