// SPDX-License-Identifier: GPL-2.0

//! Stream files: each byte is read once. They support poll, ioctl, splice and mmap.
//!
//! An open file does not use its directory, so it works after the directory is removed.

use super::tree::FileNode;
use super::{errno, may_open, this_module, Data, Dir, READ};
use crate::sys::bindings;
use crate::sys::mapping::Mapping;
use crate::sys::pipe::Pipe;
use crate::sys::privilege::Rights;
use crate::sys::wait::{PollTable, Polled};
use kernel::fs::File;
use kernel::mm::virt::VmaNew;
use kernel::prelude::*;
use kernel::uaccess::{UserPtr, UserSlice, UserSliceWriter};

/// Behaviour of a stream file. All functions may sleep.
pub(crate) trait StreamFile: 'static {
    /// Mode of the file.
    const MODE: u16 = READ;

    /// Data behind the file.
    type Data: Send + Sync + 'static;
    /// State of an open file, dropped at its last close.
    type Open: Send + Sync;

    /// Opens the file with these rights. An error is that of open(2).
    fn open(data: &Self::Data, rights: Rights) -> Result<Self::Open>;

    /// read(2): writes bytes to `out`, and returns their number. With `nonblock`, fails with `EAGAIN` and does
    /// not wait.
    fn read(open: &Self::Open, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize>;

    /// write(2): handles the `len` bytes at this address in user space, and returns how many.
    fn write(_open: &Self::Open, _address: u64, _len: usize) -> Result<usize> {
        Err(EINVAL)
    }

    /// poll(2): registers with the queue that wakes it, and returns the ready events (`POLLIN` etc.).
    fn poll(open: &Self::Open, file: &File, table: &PollTable<'_>) -> u32;

    /// ioctl(2). `request` decides whether `argument` is a pointer or a number.
    fn ioctl(open: &Self::Open, request: u32, argument: UserPtr) -> Result<isize>;

    /// splice(2): moves bytes into a pipe, and returns their number.
    fn splice(open: &Self::Open, pipe: &mut Pipe, len: usize) -> Result<usize>;

    /// mmap(2). A mapping keeps the file open.
    fn mmap(_open: &Self::Open, _mapping: &Mapping<'_>) -> Result {
        Err(ENODEV)
    }
}

impl Dir {
    /// Creates a stream file. May sleep.
    pub(crate) fn stream<F: StreamFile>(&mut self, name: &str, data: Data<F::Data>) -> Result {
        let table = &Operations::<F>::TABLE;
        self.top().file(name, F::MODE, data.0.cast(), table)
    }
}

/// An open stream file.
// Fields in the order of the drop: the queues are dropped last.
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
        write: Some(Self::write),
        poll: Some(Self::poll),
        unlocked_ioctl: Some(Self::ioctl),
        // Requests and arguments are the same for 32-bit programs.
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
    /// Only open(2) calls this, with a file that [`Dir::stream`] created.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the contract the inode is that of a file of the tree.
        let node = unsafe { FileNode::of(inode) };
        let open = || {
            may_open()?;
            let _operation = node.active.begin()?;
            // SAFETY: open(2) passes a file that is being opened.
            let rights = unsafe { Rights::of(file) };
            // SAFETY: The data stay while the guard is held. Their type is that of these operations.
            let open = F::open(unsafe { &*node.data.cast::<F::Data>() }, rights)?;
            let opened = pin_init!(Opened::<F> {
                open,
                polled <- Polled::new(),
            });
            KBox::pin_init(opened, GFP_KERNEL)
        };
        match open() {
            Ok(opened) => {
                // SAFETY: We are opening the file. The state is pinned until `release` frees the box.
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
    /// Only the kernel calls this, once, with a file that [`open`](Self::open) opened.
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: `open` stored the pointer. No code uses the file any more.
        drop(unsafe { KBox::from_raw((*file).private_data.cast::<Opened<F>>()) });
        0
    }

    /// The state that `open` created.
    ///
    /// # Safety
    ///
    /// `file` must be open with these operations while the result is used.
    unsafe fn opened<'a>(file: *mut bindings::file) -> &'a Opened<F> {
        // SAFETY: `open` stored the pointer, and only `release` frees it.
        unsafe { &*(*file).private_data.cast::<Opened<F>>() }
    }

    /// read(2).
    ///
    /// # Safety
    ///
    /// Only the kernel calls this, with an open file of these operations.
    unsafe extern "C" fn read(
        file: *mut bindings::file,
        buffer: *mut c_char,
        count: usize,
        _position: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: The kernel passes an open file of these operations.
        let (opened, flags) = unsafe { (Self::opened(file), (*file).f_flags) };
        let mut out = UserSlice::new(UserPtr::from_ptr(buffer.cast()), count).writer();
        F::read(&opened.open, &mut out, flags & bindings::O_NONBLOCK != 0)
            .map_or_else(errno, |bytes| bytes as isize)
    }

    /// write(2).
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read).
    unsafe extern "C" fn write(
        file: *mut bindings::file,
        buffer: *const c_char,
        count: usize,
        _position: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: The kernel passes an open file of these operations.
        let opened = unsafe { Self::opened(file) };
        F::write(&opened.open, buffer.addr() as u64, count)
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
        // SAFETY: The kernel passes an open file of these operations. This thread is in no fdget_pos section,
        // because poll takes none.
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
        // SAFETY: The kernel passes an open file of these operations.
        let opened = unsafe { Self::opened(file) };
        F::ioctl(&opened.open, request, UserPtr::from_addr(argument)).unwrap_or_else(errno)
    }

    /// splice(2).
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read). The pipe's lock must be held, or the pipe must be the calling task's own
    /// (sendfile(2)).
    unsafe extern "C" fn splice(
        file: *mut bindings::file,
        _position: *mut bindings::loff_t,
        pipe: *mut bindings::pipe_inode_info,
        len: usize,
        _flags: c_uint,
    ) -> isize {
        // SAFETY: The kernel passes an open file of these operations.
        let opened = unsafe { Self::opened(file) };
        // By the contract no other thread uses the pipe during the call.
        F::splice(&opened.open, &mut Pipe(pipe), len).map_or_else(errno, |bytes| bytes as isize)
    }

    /// mmap(2).
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read). The area must be created for this call.
    unsafe extern "C" fn mmap(
        file: *mut bindings::file,
        area: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY:
        // - The kernel passes an open file of these operations.
        // - The area is new, and the caller holds its lock.
        let (opened, area) = unsafe { (Self::opened(file), VmaNew::from_raw(area)) };
        F::mmap(&opened.open, &Mapping(area)).map_or_else(Error::to_errno, |()| 0)
    }
}
