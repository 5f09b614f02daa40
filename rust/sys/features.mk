# SPDX-License-Identifier: GPL-2.0
#
# Makes features.h and features.cfg: the interfaces that the kernel has. Kbuild and scripts/kernel-features include this.
# rtrace-features is the header to make, rtrace-features-by the folder of rtrace's source.

quiet_cmd_rtrace_features = CHECK   $@
      cmd_rtrace_features = mkdir -p $(@D); $(rtrace-features-by)/scripts/kernel-features \
	$(rtrace-features-by)/rust/sys/features.c $(@:.h=) $(CC) $(filter-out -Wp$(comma)%,$(c_flags)) -DMODULE

$(rtrace-features): $(rtrace-features-by)/rust/sys/features.c $(rtrace-features-by)/scripts/kernel-features FORCE
	$(call if_changed,rtrace_features)
