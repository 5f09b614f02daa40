// SPDX-License-Identifier: GPL-2.0

//! Instructions that the kernel replaces when it loads the module, by the capabilities of the processor
//! (`ALTERNATIVE()`).
//!
//! The kernel finds the places in `.altinstructions`. A replacement is as long as what it replaces. It is in a
//! subsection, so that a branch from one to the other is short.

/// A template for `asm!`: the instruction `$old`; on a processor with a capability the instruction `$new`. The operand
/// `capability` is the capability's number.
#[cfg(MODULE)]
macro_rules! alternative {
    ($old:literal, $new:literal) => {
        alternative!($old, $new, "")
    };
    ($old:literal, $new:literal, $($elsewhere:literal),+) => {
        concat!(
            "661:\n", $old, "\n662:\n",
            ".pushsection .altinstructions, \"a\"\n",
            ".word 661b - .\n.word 663f - .\n.hword {capability}\n",
            ".byte 662b - 661b\n.byte 664f - 663f\n",
            ".popsection\n",
            ".subsection 1\n",
            "663:\n", $new, "\n664:\n",
            ".org . - (664b - 663b) + (662b - 661b)\n",
            ".org . - (662b - 661b) + (664b - 663b)\n",
            $($elsewhere, "\n",)+
            ".previous\n",
        )
    };
}

/// A template for `asm!`: the instruction `$atomic` of the Large System Extensions; the other instructions, in place
/// of it, on a processor without them. These are out of line, and end at the label 666: a conditional branch to 662 could
/// be too far. The operand `capability` is [`LSE`].
#[cfg(MODULE)]
macro_rules! lse {
    ($atomic:literal, $($without:literal),+) => {
        concat!(
            ".arch_extension lse\n",
            alternative!("b 665f", $atomic, "665:", $($without,)+ "666:", "b 662b"),
        )
    };
}
/// Outside the kernel: the instruction alone, because no kernel replaces instructions there. A comment uses the operands
/// of the others.
#[cfg(not(MODULE))]
macro_rules! lse {
    ($atomic:literal, $($without:literal),+) => {
        concat!(".arch_extension lse\n", $atomic, "\n// {capability} ", $($without, " ",)+)
    };
}

/// The capability of atomic instructions.
#[cfg(MODULE)]
pub(super) const LSE: u32 = kernel::bindings::ARM64_HAS_LSE_ATOMICS;
/// Not used outside the kernel.
#[cfg(not(MODULE))]
pub(super) const LSE: u32 = 0;
