// SPDX-License-Identifier: GPL-2.0

//! Text files. The text is created when a read begins at offset 0, and stays the same until the next such read.

use super::active::ActiveOperation;
use super::tree::FileNode;
use super::{errno, may_open, this_module, Data, Dir, Group};
use crate::arch::word::SharedWord;
use crate::sys::page_vec::PageVec;
use crate::sys::privilege::Rights;
use crate::sys::wait::{Polled, WaitQueue};
use crate::sys::{bindings, signal};
use core::fmt;
use core::marker::PhantomData;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::uaccess::{UserPtr, UserSlice};

/// Maximum length of a text that one write(2) can write, in bytes.
const WRITE_MAX: usize = 64 * 1024;

/// Block size of stdio, and of a shell's `echo`: a long text is written in blocks of this size or of a multiple
/// of it.
const STDIO_BLOCK: usize = 1024;

/// A text that is being written.
pub(crate) struct Text {
    bytes: PageVec<u8>,
    /// Rights of the reader. [`None`]: the text is not read by a file.
    reader: Option<Rights>,
    /// An allocation failed, so the text is incomplete.
    truncated: bool,
}

impl Text {
    /// The text that `write` writes. `ENOMEM`: there is no memory for it. Otherwise the error is that of `write`.
    ///
    /// An error of the formatter does not say why, and the kernel crate makes `EINVAL` of it.
    pub(crate) fn new(write: impl FnOnce(&mut Self) -> Result) -> Result<Self> {
        Self::write(None, write)
    }

    /// As [`new`](Self::new), for the calling thread, whose open file has these rights. It may be long, so it ends
    /// when the thread is killed.
    fn for_reader(rights: Rights, write: impl FnOnce(&mut Self) -> Result) -> Result<Self> {
        Self::write(Some(rights), write)
    }

    fn write(reader: Option<Rights>, write: impl FnOnce(&mut Self) -> Result) -> Result<Self> {
        let mut text = Self {
            bytes: PageVec::new(),
            reader,
            truncated: false,
        };
        let written = write(&mut text);
        if text.truncated {
            return Err(ENOMEM);
        }
        written?;
        Ok(text)
    }

    /// Rights of the reader.
    pub(crate) fn rights(&self) -> Rights {
        self.reader.unwrap_or(Rights::NONE)
    }

    /// The text so far.
    pub(crate) fn as_str(&self) -> &str {
        // Only strings are ever added.
        core::str::from_utf8(&self.bytes).unwrap_or("")
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let goes_on = signal::go_on();
        if self.reader.is_some() && goes_on.is_err() {
            return Err(fmt::Error);
        }
        self.bytes.extend(s.as_bytes()).map_err(|_| {
            self.truncated = true;
            fmt::Error
        })
    }
}

/// Contents of a text file, and its reaction to writes.
pub(crate) trait TextFile: 'static {
    /// Data behind the file.
    type Data: Send + Sync + 'static;

    /// Returns the test whether a byte ends an item, for a file whose text may be a long list. If a write of whole
    /// blocks (of 1024 bytes) ends within an item, the item continues in the next write of the same open file.
    /// If the file is closed first, the item is incomplete, see [`drop_item`](Self::drop_item).
    fn ends_item(_data: &Self::Data) -> Option<fn(u8) -> bool> {
        None
    }

    /// Reports that the file was closed after an incomplete item, which has no effect. May sleep.
    fn drop_item(_data: &Self::Data, _item: &str) {}

    /// Whether the texts that [`store`](Self::store) accepts are kept until the file is closed.
    const IS_KEPT: bool = false;

    /// Handles the kept lines of a file that was opened with these rights, after its last close(2) or the end of the last
    /// process that had it open. May sleep.
    fn closed(_data: &Self::Data, _kept: &str, _rights: Rights) {}

    /// Writes the text to `out`. May sleep.
    fn show(data: &Self::Data, out: &mut Text) -> Result;

    /// Handles a text that a file with these rights wrote. May sleep. An error must leave everything unchanged.
    fn store(_data: &Self::Data, _input: &str, _rights: Rights) -> Result {
        Err(EPERM)
    }

    /// Handles the first write to a file that was opened with `O_TRUNC`, as a shell's `>` does: `input`
    /// replaces the old text. If the file is closed without a write, `input` is empty. Otherwise as
    /// [`store`](Self::store). A file whose text is one value need not distinguish both.
    fn replace(data: &Self::Data, input: &str, rights: Rights) -> Result {
        if input.is_empty() {
            return Ok(());
        }
        Self::store(data, input, rights)
    }

    /// The changes of the text for poll(2); [`None`]: changes are not announced.
    fn changes(_data: &Self::Data) -> Option<&TextChanges> {
        None
    }
}

/// Changes of a text, for poll(2).
pub(crate) struct TextChanges {
    /// Number of changes.
    count: SharedWord,
    /// Woken at each change, and when the file is removed.
    waiters: Arc<WaitQueue>,
}

impl TextChanges {
    /// Creates the state before the first change.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            count: SharedWord::new(0),
            waiters: Arc::pin_init(WaitQueue::new(), GFP_KERNEL)?,
        })
    }

    /// Announces a change that is visible already. Not from NMI, nor where a run-queue lock may be held.
    pub(crate) fn announce(&self) {
        while {
            let count = self.count.load();
            !self.count.compare_exchange(count, count.wrapping_add(1))
        } {}
        self.waiters.wake_all();
    }
}

impl Dir {
    /// Creates a text file. May sleep.
    pub(crate) fn text<F: TextFile>(
        &mut self,
        name: &str,
        mode: u16,
        data: Data<F::Data>,
    ) -> Result {
        self.top().text::<F>(name, mode, data)
    }
}

impl Group<'_> {
    /// Creates a text file. May sleep.
    pub(crate) fn text<F: TextFile>(
        &mut self,
        name: &str,
        mode: u16,
        data: Data<F::Data>,
    ) -> Result {
        // SAFETY: By the invariant of `Dir`, the group's directory or one that contains it keeps the data.
        if let Some(changes) = F::changes(unsafe { &*data.0 }) {
            self.dir.waiters.push(changes.waiters.clone(), GFP_KERNEL)?;
        }
        self.file(name, mode, data.0.cast(), &Operations::<F>::TABLE)
    }
}

/// An open text file.
#[pin_data]
struct Open<F: TextFile> {
    file: Arc<FileNode>,
    rights: Rights,
    _of: PhantomData<F>,
    #[pin]
    polled: Polled,
    #[pin]
    state: Mutex<State>,
}

struct State {
    /// The file was opened with `O_TRUNC`, and not written to yet.
    truncated: bool,
    /// The beginning of an item that the next write continues.
    unfinished: KVVec<u8>,
    /// The lines for [`TextFile::closed`].
    kept: KVVec<u8>,
    text: Option<Arc<Text>>,
    /// Number of changes when the text was created.
    version: u64,
}

impl State {
    /// Whether the file is still to be truncated. Only the first call returns `true`.
    fn take_truncation(&mut self) -> bool {
        core::mem::take(&mut self.truncated)
    }
}

impl<F: TextFile> Open<F> {
    /// The file's data. `operation` must be of this open file.
    fn data<'a>(&self, _operation: &'a ActiveOperation<'_>) -> &'a F::Data {
        // SAFETY: The data stay until the operation ends. Their type is that of the operations.
        unsafe { &*self.file.data.cast::<F::Data>() }
    }
}

struct Operations<F>(PhantomData<F>);

impl<F: TextFile> Operations<F> {
    const TABLE: bindings::file_operations = bindings::file_operations {
        owner: this_module(),
        open: Some(Self::open),
        flush: Some(Self::flush),
        release: Some(Self::release),
        read: Some(Self::read),
        write: Some(Self::write),
        poll: Some(Self::poll),
        llseek: Some(bindings::default_llseek),
        ..pin_init::zeroed()
    };

    /// open(2).
    ///
    /// # Safety
    ///
    /// Only open(2) calls this, with a file that [`Dir::text`] created.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the contract the inode is that of a file of the tree.
        let (node, flags, rights) =
            unsafe { (FileNode::of(inode), (*file).f_flags, Rights::of(file)) };
        let state = State {
            truncated: flags & bindings::O_TRUNC != 0
                && flags & bindings::O_ACCMODE != bindings::O_RDONLY,
            unfinished: KVVec::new(),
            kept: KVVec::new(),
            text: None,
            version: 0,
        };
        let open = pin_init!(Open::<F> {
            file: node,
            rights,
            _of: PhantomData,
            polled <- Polled::new(),
            state <- new_mutex!(state),
        });
        match may_open().and_then(|()| KBox::pin_init(open, GFP_KERNEL)) {
            Ok(open) => {
                // SAFETY: The state is pinned while the file is open; `release` frees it.
                unsafe {
                    (*file).private_data = KBox::into_raw(Pin::into_inner_unchecked(open)).cast()
                };
                0
            }
            Err(error) => error.to_errno(),
        }
    }

    /// Each close(2). If no other descriptor has the file open, it executes a truncation that no write has executed, and
    /// returns its error. A shell opens the file of a redirection, duplicates the descriptor and closes the first one
    /// before the command writes.
    ///
    /// # Safety
    ///
    /// As [`read`](Self::read).
    unsafe extern "C" fn flush(file: *mut bindings::file, _: bindings::fl_owner_t) -> c_int {
        // SAFETY: The kernel passes an open file of these operations.
        let open = unsafe { Self::opened(file) };
        // SAFETY: As above.
        if !unsafe { bindings::rtrace_is_last_reference(file) } {
            return 0;
        }
        let truncate = || {
            let operation = open.file.active.begin()?;
            let data = open.data(&operation);
            let truncates = open.state.lock().take_truncation();
            match truncates {
                true => F::replace(data, "", open.rights),
                false => Ok(()),
            }
        };
        match truncate() {
            // The file is removed, and so is all that could be truncated.
            Ok(()) | Err(ENOENT) => 0,
            Err(error) => error.to_errno(),
        }
    }

    /// The last close(2), or the end of the last process that has the file open. Changes nothing but what
    /// [`TextFile::closed`] does, because no error could be returned.
    ///
    /// # Safety
    ///
    /// Only the kernel calls this, once, with a file that [`open`](Self::open) opened.
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: The kernel passes a file of these operations.
        let open = unsafe { Self::opened(file) };
        let mut state = open.state.lock();
        let item = core::mem::take(&mut state.unfinished);
        let kept = core::mem::take(&mut state.kept);
        drop(state);
        if let (false, Ok(operation)) =
            (item.is_empty() && kept.is_empty(), open.file.active.begin())
        {
            let data = open.data(&operation);
            let text = |bytes| core::str::from_utf8(bytes).unwrap_or("");
            if !item.is_empty() {
                F::drop_item(data, text(&item));
            }
            if !kept.is_empty() {
                F::closed(data, text(&kept), open.rights);
            }
        }
        // SAFETY: `open` stored the pointer. No code uses the file any more.
        drop(unsafe { KBox::from_raw((*file).private_data.cast::<Open<F>>()) });
        0
    }

    /// Passes a written text to the file.
    fn take(open: &Open<F>, data: &F::Data, input: &str) -> Result {
        if F::IS_KEPT && open.state.lock().kept.len().saturating_add(input.len()) > WRITE_MAX {
            return Err(E2BIG);
        }
        // The first write uses up the truncation, even if the file refuses the text.
        let truncates = open.state.lock().take_truncation();
        match truncates {
            true => F::replace(data, input, open.rights),
            false => F::store(data, input, open.rights),
        }?;
        if F::IS_KEPT {
            let kept = &mut open.state.lock().kept;
            kept.extend_from_slice(input.as_bytes(), GFP_KERNEL)?;
            kept.push(b'\n', GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Passes a written part of a list to the file. Its last item may continue in the next write.
    fn take_items(open: &Open<F>, data: &F::Data, mut written: KVVec<u8>) -> Result {
        let count = written.len();
        let mut input = core::mem::take(&mut open.state.lock().unfinished);
        if input.is_empty() {
            core::mem::swap(&mut input, &mut written);
        }
        input.extend_from_slice(&written, GFP_KERNEL)?;
        let whole = match F::ends_item(data) {
            Some(ends) if count % STDIO_BLOCK == 0 => {
                let end = input.iter().rposition(|byte| ends(*byte));
                end.map_or(0, |end| end + 1)
            }
            _ => input.len(),
        };
        let (whole, rest) = input.split_at_checked(whole).ok_or(EINVAL)?;
        if rest.len() > WRITE_MAX {
            return Err(E2BIG);
        }
        let mut unfinished = KVVec::new();
        unfinished.extend_from_slice(rest, GFP_KERNEL)?;
        if !whole.is_empty() || rest.is_empty() {
            Self::take(open, data, core::str::from_utf8(whole).map_err(|_| EINVAL)?)?;
        }
        open.state.lock().unfinished = unfinished;
        Ok(())
    }

    /// The file's text. A read from the `beginning` creates it anew.
    ///
    /// # Safety
    ///
    /// `file` must be open with these operations.
    unsafe fn text(file: *mut bindings::file, beginning: bool) -> Result<Arc<Text>> {
        // SAFETY: By the contract.
        let open = unsafe { Self::opened(file) };
        let operation = open.file.active.begin()?;
        let data = open.data(&operation);
        let mut state = open.state.lock();
        match &state.text {
            Some(text) if !beginning => return Ok(text.clone()),
            _ => {}
        }
        // The number is read before the text is created, so that a change in between is not missed.
        let version = F::changes(data).map_or(0, |changes| changes.count.load());
        let text = Text::for_reader(open.rights, |text| F::show(data, text))?;
        let text = Arc::new(text, GFP_KERNEL)?;
        state.text = Some(text.clone());
        state.version = version;
        Ok(text)
    }

    /// The state of an open file.
    ///
    /// # Safety
    ///
    /// `file` must be open with these operations while the result is used.
    unsafe fn opened<'a>(file: *mut bindings::file) -> &'a Open<F> {
        // SAFETY: `open` stored the pointer, and only `release` frees it.
        unsafe { &*(*file).private_data.cast::<Open<F>>() }
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
        position: *mut bindings::loff_t,
    ) -> isize {
        // SAFETY: The kernel passes an open file of these operations, and its position.
        let text = match unsafe { Self::text(file, *position == 0) } {
            Ok(text) => text,
            Err(error) => return errno(error),
        };
        // The operation has ended and the lock is released: the copy may wait for user memory without limit.
        // SAFETY: The text has this many bytes. The other arguments are the caller's.
        unsafe {
            bindings::simple_read_from_buffer(
                buffer.cast(),
                count,
                position,
                text.bytes.as_ptr().cast(),
                text.bytes.len(),
            )
        }
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
        let stored = || -> Result {
            if count > WRITE_MAX {
                return Err(E2BIG);
            }
            // No operation runs and no lock is held during the copy, as in `read`.
            let mut input = KVVec::new();
            UserSlice::new(UserPtr::from_ptr(buffer.cast_mut().cast()), count)
                .read_all(&mut input, GFP_KERNEL)?;
            // SAFETY: The kernel passes an open file of these operations.
            let open = unsafe { Self::opened(file) };
            let operation = open.file.active.begin()?;
            let data = open.data(&operation);
            // As in ftrace, a write of 0 bytes adds no item to a list. For any other file it is not a value.
            if count == 0 && F::ends_item(data).is_none() {
                return Err(EINVAL);
            }
            Self::take_items(open, data, input)
        };
        match stored() {
            Ok(()) => count as isize,
            Err(error) => errno(error),
        }
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
        const ALWAYS: u32 = bindings::POLLIN | bindings::POLLOUT;
        // SAFETY: The kernel passes an open file of these operations.
        let open = unsafe { Self::opened(file) };
        let Ok(operation) = open.file.active.begin() else {
            return bindings::POLLERR | bindings::POLLHUP;
        };
        let data = open.data(&operation);
        let Some(changes) = F::changes(data) else {
            return ALWAYS;
        };
        // SAFETY: The file is open. This thread is in no fdget_pos section, because poll takes none.
        let file = unsafe { File::from_raw_file(file) };
        let table = open.polled.table(table);
        if changes.waiters.register(file, &table).is_err() {
            return ALWAYS | bindings::POLLERR;
        }
        let version = changes.count.load();
        let state = open.state.lock();
        if state.text.is_none() || state.version != version {
            ALWAYS
        } else {
            bindings::POLLOUT
        }
    }
}
