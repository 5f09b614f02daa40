// SPDX-License-Identifier: GPL-2.0

//! A session's trace as text, while it is recorded and after: all its streams, merged by time.
//!
//! The merge works in rounds. A round begins with a time, `until`; then each CPU closes its open packet. So all
//! events before that time are present, and can be put in order. Later events wait for the next round. One
//! exception: a record that was being written when the closing interrupt arrived follows one round later.

mod pending;
mod source;

use crate::channel::clock::{ClockKind, TraceTime};
use crate::session::{Session, Trace};
use crate::sys::cpu;
use crate::sys::errno::enodata;
use crate::sys::wait::{sleep, PollTable};
use core::num::NonZeroU64;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::uaccess::UserSliceWriter;
use pending::PendingText;
use source::LineSource;

/// Number of bytes of text to make at a time, up to the end of the last line.
const PORTION: usize = 16 << 10;

/// Pause between two rounds, in milliseconds.
const PAUSE_MS: u32 = 100;

/// A reader of all streams of a trace, as text.
#[pin_data(PinnedDrop)]
pub(crate) struct Lines {
    trace: Arc<Trace>,
    clock: ClockKind,
    time: Arc<TraceTime>,
    /// Whether addresses of the kernel are hidden.
    hides: bool,
    #[pin]
    reading: Mutex<Reading>,
}

/// Progress of the reading.
struct Reading {
    sources: KVec<LineSource>,
    /// All events before this time are in packets. 0: no round has begun.
    until: u64,
    text: PendingText,
}

/// Result of an attempt to make text.
enum Progress {
    /// There is text.
    Text,
    /// No text, until another round.
    Nothing,
    /// No text any more.
    End,
}

impl Lines {
    /// Becomes the reader of all streams of the session's trace. With `hides`, addresses of the kernel are
    /// blanked.
    ///
    /// Fails with `ENODATA` if there is no trace or its buffers were freed, `EBUSY` if a stream has a reader.
    /// May sleep.
    pub(crate) fn open(session: &Session, hides: bool) -> Result<Pin<KBox<Self>>> {
        let trace = session.trace()?;
        let mut reading = Reading {
            sources: KVec::new(),
            until: 0,
            text: PendingText::new(),
        };
        reading.open_streams(&trace, hides)?;
        let buffers = trace.channels().find_map(|channel| channel.buffers().ok());
        let buffers = buffers.ok_or_else(enodata)?;
        let (clock, time) = (buffers.setup().clock, buffers.setup().time.clone());
        KBox::pin_init(
            pin_init!(Self {
                trace,
                clock,
                time,
                hides,
                reading <- new_mutex!(reading),
            }),
            GFP_KERNEL,
        )
    }

    /// read(2): copies text. Returns 0 when the trace is over and all of it was read. With `nonblock`, fails
    /// with `EAGAIN` and does not wait. May sleep.
    pub(crate) fn read(&self, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        // The first round begins at once. Later ones begin after a pause, so that a reader whose reading causes
        // events does not read without end.
        let mut begins = nonblock || self.reading.lock().until == 0;
        loop {
            let mut reading = self.reading.lock();
            match self.advance(&mut reading, begins)? {
                Progress::Text => return reading.text.take(out),
                Progress::End => return Ok(0),
                Progress::Nothing if nonblock => return Err(EAGAIN),
                Progress::Nothing => {}
            }
            drop(reading);
            sleep(PAUSE_MS)?;
            begins = true;
        }
    }

    /// Events for poll(2).
    pub(crate) fn poll(&self, file: &File, table: &PollTable<'_>) -> u32 {
        use crate::sys::bindings::{POLLERR, POLLHUP, POLLIN, POLLRDNORM};
        let reading = self.reading.lock();
        let (mut readable, mut ended, mut failed) = (!reading.text.is_empty(), true, 0);
        for source in &reading.sources {
            let answer = source.poll(file, table);
            readable |= answer & POLLIN != 0;
            ended &= answer & POLLHUP != 0;
            failed |= answer & POLLERR;
        }
        match (readable, ended) {
            (true, _) => POLLIN | POLLRDNORM | failed,
            (false, true) => POLLHUP,
            (false, false) => failed,
        }
    }

    /// Makes text if there is none. Begins a round if this one is over and `begins` allows it.
    fn advance(&self, reading: &mut Reading, begins: bool) -> Result<Progress> {
        let mut begins = begins;
        loop {
            reading.merge(self.clock.frequency())?;
            if !reading.text.is_empty() {
                return Ok(Progress::Text);
            }
            if reading.sources.iter().all(LineSource::is_ended) {
                return Ok(Progress::End);
            }
            if !begins {
                return Ok(Progress::Nothing);
            }
            begins = false;
            match reading.open_streams(&self.trace, self.hides) {
                // A CPU may have come online since. Another reader may have opened its stream first.
                Ok(()) | Err(EBUSY) => {}
                Err(error) if error == enodata() => {}
                Err(error) => return Err(error),
            }
            // Read before the flush: later events belong to the next round.
            reading.until = self.time.now();
            for source in &mut reading.sources {
                source.flush()?;
            }
        }
    }
}

impl Reading {
    /// Opens the streams that are not open yet. `ENODATA`: there are none.
    fn open_streams(&mut self, trace: &Trace, hides: bool) -> Result {
        for channel in trace.channels() {
            for cpu in cpu::possible() {
                if self.sources.iter().any(|known| known.is_of(channel, cpu)) {
                    continue;
                }
                match LineSource::open(channel, cpu, hides) {
                    Ok(source) => self.sources.push(source, GFP_KERNEL)?,
                    Err(error) if error == enodata() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if self.sources.is_empty() {
            return Err(enodata());
        }
        Ok(())
    }

    /// Makes a portion of text, of the events of this round.
    fn merge(&mut self, frequency: NonZeroU64) -> Result {
        while self.text.len() < PORTION {
            let mut first: Option<(u64, &mut LineSource)> = None;
            for source in &mut self.sources {
                let Some(time) = source.time()? else {
                    continue;
                };
                if time <= self.until && first.as_ref().is_none_or(|(least, _)| time < *least) {
                    first = Some((time, source));
                }
            }
            let Some((_, source)) = first else {
                break;
            };
            let whole = self.text.len();
            source
                .write(&mut self.text, frequency)
                .inspect_err(|_| self.text.truncate(whole))?;
        }
        Ok(())
    }
}

#[pinned_drop]
impl PinnedDrop for Lines {
    fn drop(self: Pin<&mut Self>) {
        // The check whether all was read then finds that these readers are gone.
        self.reading.lock().sources.clear();
        for channel in self.trace.channels() {
            channel.free_if_read();
        }
    }
}
