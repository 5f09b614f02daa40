// SPDX-License-Identifier: GPL-2.0
/*
 * The events of one header: HEADER, given by Kbuild. Compiled once for each header.
 */
#ifdef PREAMBLE
#include PREAMBLE
#endif
#include "probe.h"
#include PRIVATE

/* First for the prototypes and the header's one-time definitions; some of these only then. */
#ifdef CREATE
#define CREATE_TRACE_POINTS
#endif
#include HEADER
#undef CREATE_TRACE_POINTS

#define TRACE_HEADER_MULTI_READ
#include "stages.h"
