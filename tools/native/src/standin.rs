// SPDX-License-Identifier: GPL-2.0

//! What the module's files use of the crates `kernel` and `pin_init`, in user space.

pub mod prelude {
    //! Stand-in for `kernel::prelude`.

    pub use crate::machine::Zeroable;
    pub use crate::{new_mutex, try_pin_init};
    /// Knows the attribute `#[pin]`, which is all that is asked of it.
    pub use pin_project::pin_project as pin_data;

    /// An error number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Error(pub i32);

    /// Invalid argument.
    pub const EINVAL: Error = Error(libc::EINVAL);

    /// `Result` with the kernel's defaults.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;

    /// How to allocate: there is one way here.
    pub struct Flags;

    /// May sleep.
    pub const GFP_KERNEL: Flags = Flags;

    /// Makes a `T`.
    pub trait PinInit<T, E = Error> {
        /// Makes it.
        fn make(self) -> Result<T, E>;
    }

    impl<T, E, F: FnOnce() -> Result<T, E>> PinInit<T, E> for F {
        fn make(self) -> Result<T, E> {
            self()
        }
    }

    /// A vector.
    #[derive(Debug)]
    pub struct KVVec<T>(Vec<T>);

    impl<T> KVVec<T> {
        /// An empty one.
        pub fn with_capacity(capacity: usize, _: Flags) -> Result<Self> {
            Ok(Self(Vec::with_capacity(capacity)))
        }

        /// Appends.
        pub fn push(&mut self, item: T, _: Flags) -> Result {
            self.0.push(item);
            Ok(())
        }
    }

    impl<T> core::ops::Deref for KVVec<T> {
        type Target = [T];
        fn deref(&self) -> &[T] {
            &self.0
        }
    }
}

pub mod sync {
    //! Stand-in for `kernel::sync`.

    use super::prelude::{Flags, PinInit, Result};
    use std::sync::{MutexGuard, PoisonError};

    pub use crate::new_mutex;

    /// A counted reference.
    #[derive(Debug)]
    pub struct Arc<T>(std::sync::Arc<T>);

    impl<T> Arc<T> {
        /// Makes it a counted object.
        pub fn new(value: T, _: Flags) -> Result<Self> {
            Ok(Self(std::sync::Arc::new(value)))
        }

        /// Makes the object in its place.
        pub fn pin_init<E>(init: impl PinInit<T, E>, _: Flags) -> Result<Self, E> {
            Ok(Self(std::sync::Arc::new(init.make()?)))
        }

        /// Its address; the object stays for ever.
        pub(crate) fn into_raw(self) -> *const T {
            std::sync::Arc::into_raw(self.0)
        }
    }

    impl<T> Clone for Arc<T> {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    impl<T> core::ops::Deref for Arc<T> {
        type Target = T;
        fn deref(&self) -> &T {
            &self.0
        }
    }

    /// A lock that does not poison.
    #[derive(Debug)]
    pub struct Mutex<T>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Makes it.
        pub fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        /// Takes it.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

pub mod uaccess {
    //! Stand-in for `kernel::uaccess`.

    use super::prelude::{Error, Result};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// Where a reader's bytes go: a file that is written over and over.
    #[derive(Debug)]
    pub struct UserSliceWriter {
        file: File,
        size: u64,
        at: u64,
    }

    impl UserSliceWriter {
        /// Into `file`, which grows to `size` bytes.
        pub fn new(file: File, size: u64) -> Self {
            Self { file, size, at: 0 }
        }

        /// Writes; the only copy.
        pub fn write_slice(&mut self, bytes: &[u8]) -> Result {
            if self.at + bytes.len() as u64 > self.size {
                self.at = 0;
            }
            self.file
                .write_all_at(bytes, self.at)
                .map_err(|error| Error(error.raw_os_error().unwrap_or(0)))?;
            self.at += bytes.len() as u64;
            Ok(())
        }
    }
}

pub mod fmt {
    //! Stand-in for `kernel::fmt`.

    pub use core::fmt::*;
}

/// Makes what the initialiser that `f` makes, makes.
pub fn pin_init_scope<T, E, I: prelude::PinInit<T, E>>(
    f: impl FnOnce() -> Result<I, E>,
) -> impl prelude::PinInit<T, E> {
    || f()?.make()
}

/// An initialiser of a struct.
#[doc(hidden)]
#[macro_export]
macro_rules! try_pin_init {
    ($ty:ident { $($fields:tt)* }? $error:ty) => {
        move || -> ::core::result::Result<$ty, $error> {
            $crate::try_pin_init!(@field $ty [] $($fields)*)
        }
    };
    (@field $ty:ident [$($done:tt)*]) => {
        Ok($ty { $($done)* })
    };
    (@field $ty:ident [$($done:tt)*] $name:ident <- $init:expr, $($rest:tt)*) => {
        $crate::try_pin_init!(
            @field $ty [$($done)* $name: $crate::prelude::PinInit::make($init)?,] $($rest)*)
    };
    (@field $ty:ident [$($done:tt)*] $name:ident : $value:expr, $($rest:tt)*) => {
        $crate::try_pin_init!(@field $ty [$($done)* $name: $value,] $($rest)*)
    };
    (@field $ty:ident [$($done:tt)*] $name:ident, $($rest:tt)*) => {
        $crate::try_pin_init!(@field $ty [$($done)* $name,] $($rest)*)
    };
}

/// An initialiser of a mutex.
#[doc(hidden)]
#[macro_export]
macro_rules! new_mutex {
    ($value:expr) => {
        || Ok::<_, $crate::prelude::Error>($crate::sync::Mutex::new($value))
    };
}
