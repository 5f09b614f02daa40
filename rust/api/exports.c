// SPDX-License-Identifier: GPL-2.0
/* Symbols of the API for other modules (rtrace.h). mod.rs defines the functions. */
#include <linux/export.h>

#include "rtrace.h"

EXPORT_SYMBOL_GPL(rtrace_event_register);
EXPORT_SYMBOL_GPL(rtrace_event_unregister);
EXPORT_SYMBOL_GPL(rtrace_event_enabled);
EXPORT_SYMBOL_GPL(rtrace_event_emit);
EXPORT_SYMBOL_GPL(rtrace_tracepoints_register);
EXPORT_SYMBOL_GPL(rtrace_tracepoints_unregister);
EXPORT_SYMBOL_GPL(rtrace_record_begin);
EXPORT_SYMBOL_GPL(rtrace_record_end);
EXPORT_SYMBOL_GPL(rtrace_aux_register);
EXPORT_SYMBOL_GPL(rtrace_aux_unregister);
EXPORT_SYMBOL_GPL(rtrace_aux_begin);
EXPORT_SYMBOL_GPL(rtrace_aux_end);
