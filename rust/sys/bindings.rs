// SPDX-License-Identifier: GPL-2.0

//! Bindings of the kernel crate, and the additions of `bindings_helper.h`.

#![allow(
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unused_imports,
    unsafe_op_in_unsafe_fn
)]

// scripts/check-kdir refuses these kernels, too.
#[cfg(CONFIG_RANDSTRUCT)]
compile_error!("CONFIG_RANDSTRUCT: bindgen does not know the order of a structure's fields");
#[cfg(all(
    any(CONFIG_CFI, CONFIG_CFI_CLANG),
    not(CONFIG_CFI_ICALL_NORMALIZE_INTEGERS)
))]
compile_error!("CONFIG_CFI without CONFIG_CFI_ICALL_NORMALIZE_INTEGERS: C and Rust code could not call each other");
#[cfg(all(CONFIG_KASAN, not(CONFIG_CC_IS_CLANG)))]
compile_error!(
    "CONFIG_KASAN of a kernel that gcc built: only clang checks the memory of Rust code"
);
#[cfg(all(CONFIG_LTO, CONFIG_DEBUG_INFO_BTF))]
compile_error!("CONFIG_LTO and CONFIG_DEBUG_INFO_BTF: with both, the kernel allows no Rust code");

use kernel::ffi;
use pin_init::MaybeZeroable;

pub(crate) use kernel::bindings::*;

include!(env!("RTRACE_BINDINGS"));
