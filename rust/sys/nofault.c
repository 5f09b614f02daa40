// SPDX-License-Identifier: GPL-2.0
/* Reads of memory at an address that may not be mapped. */
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "faults.h"
#include "helpers.h"

/*
 * Reads @size bytes into the lowest bytes of @value, and clears the other bytes. Returns false if the memory
 * cannot be read. NMI-safe, except for RTRACE_USER_FAULTS.
 */
notrace bool rtrace_read(u64 address, enum rtrace_space space, u64 *value, size_t size)
{
	const void __user *user = (const void __user *)(unsigned long)address;

	*value = 0;
	if (space == RTRACE_KERNEL)
		return !copy_from_kernel_nofault(value, (const void *)(unsigned long)address, size);
	if (!copy_from_user_nofault(value, user, size))
		return true;
	return space == RTRACE_USER_FAULTS && !rtrace_fault_in(address, size) &&
	       !copy_from_user_nofault(value, user, size);
}

/*
 * Reads the text at @address, without its NUL, @room bytes at most. Returns its length, or a negative value if
 * it cannot be read. Reads word by word, because an aligned word is on one page. Context as for rtrace_read().
 */
notrace ssize_t rtrace_read_text(u64 address, enum rtrace_space space, char *to, size_t room)
{
	size_t got = 0, len, part;
	char word[8];

	while (got < room) {
		part = sizeof(word) - (address + got) % sizeof(word);
		if (!rtrace_read(address + got, space, (u64 *)word, part))
			return -EFAULT;
		len = strnlen(word, min(part, room - got));
		memcpy(to + got, word, len);
		got += len;
		if (len < part)
			break;
	}
	return got;
}
