// SPDX-License-Identifier: GPL-2.0

//! Events at an operation of the writer's CPU: a nested context, or the reader's interrupt.
//!
//! The caller gives the number of the operation, and a search tries each number. Operations of the
//! nested context count, too. The interrupt is a rendezvous. The writer does not pass that
//! operation before the reader's request. The reader does not pass its request before the writer
//! has executed a full barrier there. A further request waits for the end of the writer. No side
//! waits for ever, because each one reports its end.

use loom::sync::atomic::{fence, Ordering};
use loom::sync::mpsc::{channel, Receiver, Sender};
use std::cell::RefCell;
use std::mem::ManuallyDrop;

/// A message from the reader.
enum Request {
    Barrier,
    /// The writer's CPU must run this.
    Run(Box<dyn FnOnce()>),
    Ended,
}

/// The writer's end of the connection, and the events still to come.
#[derive(Default)]
pub struct WriterCpu {
    next: u32,
    nested: Event<Box<dyn FnOnce()>>,
    interrupt: Event<Line<Request>>,
    answers: Option<Sender<()>>,
}

/// An event at operation `at`.
struct Event<T> {
    at: u32,
    what: Option<T>,
}

impl<T> Default for Event<T> {
    fn default() -> Self {
        Self { at: 0, what: None }
    }
}

impl<T> Event<T> {
    fn new(at: u32, what: T) -> Self {
        let what = Some(what);
        Self { at, what }
    }

    fn due(&mut self, now: u32) -> Option<T> {
        if now == self.at {
            self.what.take()
        } else {
            None
        }
    }
}

/// The reader's end of the connection.
pub struct ReaderCpu {
    requests: Sender<Request>,
    answers: Line<()>,
    asked: u32,
}

/// A receiver that is not dropped while its execution panics. loom's own drop would then use the
/// execution, which no longer exists.
struct Line<T>(ManuallyDrop<Receiver<T>>);

impl<T> Line<T> {
    fn new(receiver: Receiver<T>) -> Self {
        Self(ManuallyDrop::new(receiver))
    }

    fn receive(&self) -> T {
        self.0.recv().expect("the other end is kept")
    }
}

impl<T> Drop for Line<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: `self.0` is not used again.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}

loom::thread_local! {
    static WRITER: RefCell<Option<WriterCpu>> = RefCell::new(None);
    static READER: RefCell<Option<ReaderCpu>> = RefCell::new(None);
}

impl WriterCpu {
    /// Makes a nested context run `work` at operation `at`.
    pub fn nested(&mut self, at: u32, work: impl FnOnce() + 'static) {
        self.nested = Event::new(at, Box::new(work));
    }

    /// Serves the reader's first request at operation `at`.
    pub fn interrupted(&mut self, at: u32) -> ReaderCpu {
        let (requests, receiver) = channel();
        let (sender, answers) = channel();
        self.interrupt = Event::new(at, Line::new(receiver));
        self.answers = Some(sender);
        ReaderCpu {
            requests,
            answers: Line::new(answers),
            asked: 0,
        }
    }

    /// Returns whether the writer reached the operation of the nested context, and that of the
    /// interrupt.
    pub fn reached(&self) -> [bool; 2] {
        [self.nested.at, self.interrupt.at].map(|at| self.next > at)
    }
}

/// Makes this thread's CPU the writer's.
pub fn begin_write(cpu: WriterCpu) {
    WRITER.with(|writer| *writer.borrow_mut() = Some(cpu));
}

/// Ends the writer. The caller keeps the returned value until the reader has ended, too.
#[must_use]
pub fn end_write() -> WriterCpu {
    let cpu = WRITER.with(|writer| writer.borrow_mut().take());
    let cpu = cpu.expect("it has begun");
    if let Some(answers) = &cpu.answers {
        fence(Ordering::SeqCst);
        // The maximum number that the reader waits for.
        for _ in 0..2 {
            answers.send(()).expect("the reader's end is kept");
        }
    }
    cpu
}

/// Makes this thread's CPU the reader's.
pub fn begin_read(cpu: ReaderCpu) {
    READER.with(|reader| *reader.borrow_mut() = Some(cpu));
}

/// Ends the reader.
#[must_use]
pub fn end_read() -> Option<ReaderCpu> {
    let cpu = READER.with(|reader| reader.borrow_mut().take())?;
    if cpu.asked == 0 {
        cpu.requests
            .send(Request::Ended)
            .expect("the writer's end is kept");
    }
    Some(cpu)
}

/// Called before each access; runs the writer's events that are due.
pub fn operation() {
    let due = WRITER.with(|writer| {
        let mut writer = writer.borrow_mut();
        let cpu = writer.as_mut()?;
        let now = cpu.next;
        cpu.next += 1;
        Some((cpu.interrupt.due(now), cpu.nested.due(now)))
    });
    let Some((interrupt, nested)) = due else {
        return;
    };
    if let Some(requests) = interrupt {
        let is_asked = match requests.receive() {
            Request::Barrier => {
                fence(Ordering::SeqCst);
                true
            }
            Request::Run(work) => {
                work();
                true
            }
            Request::Ended => false,
        };
        if is_asked {
            WRITER.with(|writer| {
                let writer = writer.borrow();
                let answers = writer.as_ref().and_then(|cpu| cpu.answers.as_ref());
                let answers = answers.expect("a line");
                answers.send(()).expect("the reader's end is kept");
            });
        }
    }
    if let Some(work) = nested {
        work();
    }
}

/// Sends the reader's request: returns after the writer's CPU has executed a full barrier.
pub fn interrupt() {
    ask(Request::Barrier);
}

/// Like [`interrupt`]: returns after the writer's CPU has run `work`, or when the writer has ended.
pub fn run_there(work: Box<dyn FnOnce()>) {
    ask(Request::Run(work));
}

fn ask(request: Request) {
    READER.with(|reader| {
        let mut reader = reader.borrow_mut();
        let Some(cpu) = reader.as_mut() else {
            // The writer has ended.
            return;
        };
        cpu.asked += 1;
        if cpu.asked == 1 {
            cpu.requests
                .send(request)
                .expect("the writer's end is kept");
        }
        if cpu.asked <= 2 {
            cpu.answers.receive();
        }
    });
}
