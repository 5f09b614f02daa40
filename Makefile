# SPDX-License-Identifier: GPL-2.0
# The work is done by scripts/, each of which knows --help. Kbuild reads the file
# Kbuild, never this one.

.DEFAULT_GOAL := all
export KDIR KERNEL PREFIX DESTDIR

all: module tools ## build the module and the tools

module: ## build the module and the samples for KDIR or KERNEL
	@scripts/module build

events: module ## build rtrace-events, the module with the kernel's own events (minutes, once)
	@scripts/module events

tools: ## build the userspace tools
	@scripts/tools build

demo: ## record a workload in a stock kernel, in QEMU, report it, and write a page of it
	@scripts/demo

test: ## run every check, unit test and selftest but the slow ones
	@scripts/test

verify: ## the long run: also long searches, stress and fuzzing, and the debug kernel
	@scripts/verify

test-kernels: ## the selftests on every kernel that the backports carry
	@scripts/test-kernels

check: ## lints, layer check and unit tests: what needs no QEMU
	@scripts/test --no-qemu

bench: ## compare with LTTng, ftrace, perf and BPF, in QEMU (long)
	@scripts/bench

deb: ## build the Debian packages: rtrace-dkms (the modules' source) and rtrace (commands, units)
	@scripts/deb

install: ## install modules, tools, man pages and systemd units (DESTDIR, PREFIX)
	@scripts/module install
	@scripts/tools install

clean: ## remove what was built here (not the cache)
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 | \2/p' Makefile | column -t -s '|' 2>/dev/null || \
		sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1   \2/p' Makefile
	@echo
	@echo '  KDIR=DIR       build for this kernel tree (7.2 or later, CONFIG_RUST), with its host tools'
	@echo '  KERNEL=7.3-rt  build for, test on, a stock kernel (scripts/kernel list)'
	@echo '  RTRACE_CACHE   where the build root, kernels and guest image are kept ($$HOME/.cache/rtrace)'

.PHONY: all module events tools demo test verify test-kernels check bench deb install clean help
