/* SPDX-License-Identifier: GPL-2.0 */
/* The header that the reader writes before each packet's bytes, for the oracle. */
#ifndef STRESS_FRAME_H
#define STRESS_FRAME_H

#include "record.h"

#define FRAME_MAGIC 0x656d617266747221ULL

struct frame {
	u64 magic;
	/* The answer of GET_PACKET. */
	struct {
		u64 sequence;
		u64 size;
		u64 content;
		u64 records;
	} packet;
};

#endif
