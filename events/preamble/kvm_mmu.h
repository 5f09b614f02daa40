/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/kvm_host.h>
#include <arch/x86/kvm/irq.h>
#include <arch/x86/kvm/mmu.h>
#include <arch/x86/kvm/mmu/mmu_internal.h>
#include <arch/x86/kvm/mmu/spte.h>
