// SPDX-License-Identifier: GPL-2.0

//! Files that are streams: read once, with poll, ioctl, splice and mmap.
//!
//! An open one needs nothing of its directory: it works on when that is removed.

use super::{errno, may_open, this_module, Data, Dir, READ};
use crate::sys::bindings;
use crate::sys::mapping::Mapping;
use crate::sys::pipe::Pipe;
use crate::sys::wait::{PollTable, Polled};
use kernel::fs::File;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;
use kernel::uaccess::{UserPtr, UserSlice, UserSliceWriter};

/// A stream's behaviour. Everything may sleep.
pub(crate) trait StreamFile: 'static {
    /// What the file is of.
    type Data: Send + Sync + 'static;
    /// What an open file is; dropped when it is closed for the last time.
    type Open: Send + Sync;

    /// Opens. An error is open(2)'s.
    fn open(data: &Self::Data) -> Result<Self::Open>;

    /// read(2): how many bytes were written to `out`. With `nonblock`, `EAGAIN` instead of waiting.
    fn read(open: &Self::Open, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize>;

    /// poll(2): registers with what wakes it, and says what is ready (`POLLIN` etc.).
    fn poll(open: &Self::Open, file: &File, table: &PollTable<'_>) -> u32;

    /// ioctl(2). `argument` is a pointer or a number, as `request` says.
    fn ioctl(open: &Self::Open, request: u32, argument: UserPtr) -> Result<isize>;

    /// splice(2) into a pipe: how many bytes were moved.
    fn splice(open: &Self::Open, pipe: &mut Pipe, len: usize) -> Result<usize>;

    /// mmap(2). What is mapped keeps the file open.
    fn mmap(_open: &Self::Open, _mapping: &Mapping<'_>) -> Result {
        Err(ENODEV)
    }
}

impl Dir {
    /// Makes a stream file. May sleep.
    pub(crate) fn stream<F: StreamFile>(&mut self, name: &str, data: Data<F::Data>) -> Result {
        let table = &Operations::<F>::TABLE;
        self.top().file(name, READ, data.0.cast(), table)
    }
}

/// An open stream file.
// Fields in the order of their end: the queues go last.
#[pin_data]
struct Opened<F: StreamFile> {
    open: F::Open,
    #[pin]
    polled: Polled,
}

struct Operations<F>(core::marker::PhantomData<F>);

impl<F: StreamFile> Operations<F> {
    const TABLE: bindings::file_operations = bindings::file_operations {
        owner: this_module(),
        open: Some(Self::open),
        release: Some(Self::release),
        read: Some(Self::read),
        poll: Some(Self::poll),
        unlocked_ioctl: Some(Self::ioctl),
        // The requests and their arguments are the same for 32-bit programs.
        compat_ioctl: bindings::compat_ptr_ioctl,
        splice_read: Some(Self::splice),
        mmap: Some(Self::mmap),
        llseek: Some(bindings::noop_llseek),
        ..pin_init::zeroed()
    };

    /// open(2).
    ///
    /// # Safety
    ///
    /// For debugfs to call, with a file that [`Dir::stream`] made.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: debugfs opens the files of a `Dir` with their inode, which points to the data,
        // and holds its guard meanwhile.
        let data = unsafe { &*(*inode).i_private.cast::<F::Data>() };
        let opened = may_open().and_then(|()| F::open(data)).and_then(|open| {
            let opened = pin_init!(Opened::<F> {
                open,
                polled <- Polled::new(),
            });
            KBox::pin_init(opened, GFP_KERNEL)
        });
        match opened {
            Ok(opened) => {
                // SAFETY: The file is being opened by us. Pinned until `release` takes the box back.
                unsafe {
                    (*file).private_data = KBox::into_raw(Pin::into_inner_unchecked(opened)).cast();
                    bindings::stream_open(inode, file);
                }
                0
            }
            Err(error) => error.to_errno(),
        }
    }

    /// The last close(2).
    ///
    /// # Safety
    ///
    /// For the kernel to call, with a file that [`open`](Self::open) opened, once.
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: Put there by `open`; nobody uses the file any more.
        drop(unsafe { KBox::from_raw((*file).private_data.cast::<Opened<F>>()) });
        0
    }

    /// What `open` made.
    ///
    /// # Safety
    ///
    /// `file` must be open with these operations, for as long as the result is used.
    unsafe fn opened<'a>(file: *mut bindings::file) -> &'a Opened<F> {
        // SAFETY: Put there by `open`, taken back by `release` only.
        unsafe { &*(*file).private_data.cast::<Opened<F>>() }
    }

    /// read(2).
    ///
    /// # Safety
    ///
    /// For the kernel to call, with an open file of these operations.
    unsafe extern "C" fn read(
        file: *mut bindings::file,
        buffer: *mut c_char,
        count: usize,
        _position: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: The kernel calls with an open file of these operations.
        let (opened, flags) = unsafe { (Self::opened(file), (*file).f_flags) };
        let mut out = UserSlice::new(UserPtr::from_ptr(buffer.cast()), count).writer();
        F::read(&opened.open, &mut out, flags & bindings::O_NONBLOCK != 0)
            .map_or_else(errno, |bytes| bytes as isize)
    }

    /// poll(2).
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read).
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table,
    ) -> bindings::__poll_t {
        // SAFETY: The kernel calls with an open file of these operations; poll takes no
        // fdget_pos section.
        let (opened, file) = unsafe { (Self::opened(file), File::from_raw_file(file)) };
        F::poll(&opened.open, file, &opened.polled.table(table))
    }

    /// ioctl(2).
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read).
    unsafe extern "C" fn ioctl(
        file: *mut bindings::file,
        request: c_uint,
        argument: c_ulong,
    ) -> c_long {
        // SAFETY: The kernel calls with an open file of these operations.
        let opened = unsafe { Self::opened(file) };
        F::ioctl(&opened.open, request, UserPtr::from_addr(argument)).unwrap_or_else(errno)
    }

    /// splice(2).
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read), and with a pipe whose lock is held, or that is the calling task's own
    /// (sendfile(2)).
    unsafe extern "C" fn splice(
        file: *mut bindings::file,
        _position: *mut bindings::loff_t,
        pipe: *mut bindings::pipe_inode_info,
        len: usize,
        _flags: c_uint,
    ) -> isize {
        // SAFETY: The kernel calls with an open file of these operations.
        let opened = unsafe { Self::opened(file) };
        // By the contract no other thread uses the pipe now.
        F::splice(&opened.open, &mut Pipe(pipe), len).map_or_else(errno, |bytes| bytes as isize)
    }

    /// mmap(2).
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read), and with an area that is being made for this call.
    unsafe extern "C" fn mmap(
        file: *mut bindings::file,
        area: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY:
        // - The kernel calls with an open file of these operations.
        // - The area is new, and the caller holds its lock.
        let (opened, area) = unsafe { (Self::opened(file), VmaNew::from_raw(area)) };
        F::mmap(&opened.open, &Mapping(area)).map_or_else(Error::to_errno, |()| 0)
    }
}
