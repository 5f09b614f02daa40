// SPDX-License-Identifier: GPL-2.0
/* Memory of user-chosen sizes: allocated near a CPU, or reserved on the command line. */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "helpers.h"
#include "linux.h"

/*
 * Allocates zeroed pages near @cpu, which need not be online. rtrace_vfree() frees them. They are charged to the memory
 * cgroup of the caller. The allocation tries hard, but never has the OOM killer kill a process, which could be any
 * process. The kernel's own functions that take a node call the OOM killer. A fatal signal ends the allocation.
 */
notrace void *rtrace_vmalloc_near(size_t count, int cpu)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	struct page **pages = kvmalloc_array(count, sizeof(*pages), gfp);
	size_t got = 0;
	void *memory = NULL;

	if (!pages)
		return NULL;
	while (got < count && !fatal_signal_pending(current)) {
		/* The batch size of vmalloc(). With a memory cgroup, the kernel returns one page. */
		size_t more = alloc_pages_bulk_node(gfp, cpu_to_node(cpu),
						    min_t(size_t, count - got, 100), pages + got);
		if (!more)
			break;
		got += more;
		cond_resched();
	}
	if (got == count)
		memory = vmap(pages, count, VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (!memory) {
		while (got)
			__free_page(pages[--got]);
		kvfree(pages);
	}
	return memory;
}

notrace void rtrace_vfree(const void *memory)
{
	vfree(memory);
}

/*
 * Finds the whole pages of memory that reserve_mem= on the command line has reserved under a name. The kernel
 * takes this memory from its allocator's memory, so it is mapped and has pages.
 */
notrace void *rtrace_reserved(const char *name, u64 *len)
{
	phys_addr_t start, size, end;

	if (!reserve_mem_find_by_name(name, &start, &size))
		return NULL;
	end = PAGE_ALIGN_DOWN(start + size);
	start = PAGE_ALIGN(start);
	if (start >= end || !pfn_valid(PHYS_PFN(start)) || !pfn_valid(PHYS_PFN(end - 1)))
		return NULL;
	*len = end - start;
	return phys_to_virt(start);
}

notrace struct page *rtrace_page_of(const void *address)
{
	return is_vmalloc_addr(address) ? vmalloc_to_page(address) : virt_to_page(address);
}

/* Address, in the direct mapping, of the page that contains @address. */
notrace void *rtrace_direct(const void *address)
{
	return page_address(rtrace_page_of(address));
}

notrace void rtrace_get_page(struct page *page)
{
	get_page(page);
}

notrace void rtrace_put_page(struct page *page)
{
	put_page(page);
}
