/* SPDX-License-Identifier: GPL-2.0 */
#include <linux/kvm_host.h>
#include <arch/x86/kvm/irq.h>
#include <arch/x86/kvm/x86.h>
#include <arch/x86/kvm/lapic.h>

unsigned long tracing_kvm_rip_read(struct kvm_vcpu *vcpu);
