// SPDX-License-Identifier: GPL-2.0

//! What happens at an operation of the writer's CPU: a nested context, or the reader's
//! interrupt.
//!
//! At which operation is given from outside, and each is tried. The interrupt is a rendezvous:
//! the writer does not go past that operation before the reader asks, nor the reader past its
//! request before the writer has executed a full barrier there. A further request waits for
//! the writer's end. So nobody waits for ever: both say when they have ended.

use loom::sync::atomic::{fence, Ordering};
use loom::sync::mpsc::{channel, Receiver, Sender};
use std::cell::RefCell;

/// What the reader says.
#[derive(PartialEq, Eq)]
enum Request {
    Barrier,
    Ended,
}

/// The writer's end of the line, and what is still to happen.
pub struct WriterCpu {
    at: u32,
    next: u32,
    event: Option<Event>,
    answers: Option<Sender<()>>,
}

enum Event {
    Record(Box<dyn FnOnce()>),
    Interrupt(Receiver<Request>),
}

/// The reader's end of the line.
pub struct ReaderCpu {
    requests: Sender<Request>,
    answers: Receiver<()>,
    asked: u32,
}

loom::thread_local! {
    static WRITER: RefCell<Option<WriterCpu>> = RefCell::new(None);
    static READER: RefCell<Option<ReaderCpu>> = RefCell::new(None);
}

impl WriterCpu {
    /// A nested context runs `work` at operation `at`.
    pub fn nested(at: u32, work: impl FnOnce() + 'static) -> Self {
        Self {
            at,
            next: 0,
            event: Some(Event::Record(Box::new(work))),
            answers: None,
        }
    }

    /// The reader's first request is served at operation `at`.
    pub fn interrupted(at: u32) -> (Self, ReaderCpu) {
        let (requests, receiver) = channel();
        let (sender, answers) = channel();
        let writer = Self {
            at,
            next: 0,
            event: Some(Event::Interrupt(receiver)),
            answers: Some(sender),
        };
        let reader = ReaderCpu {
            requests,
            answers,
            asked: 0,
        };
        (writer, reader)
    }
}

/// This thread's CPU is the writer's from now on.
pub fn begin_write(cpu: WriterCpu) {
    WRITER.with(|writer| *writer.borrow_mut() = Some(cpu));
}

/// The writer is done. What it gives is to be kept until the reader has ended, too, and says
/// whether it came to the operation.
#[must_use]
pub fn end_write() -> Option<(WriterCpu, bool)> {
    let cpu = WRITER.with(|writer| writer.borrow_mut().take())?;
    let happened = cpu.event.is_none() || cpu.next > cpu.at;
    if let Some(answers) = &cpu.answers {
        fence(Ordering::SeqCst);
        // As many as the reader waits for at most.
        for _ in 0..2 {
            answers.send(()).expect("the reader's end is kept");
        }
    }
    Some((cpu, happened))
}

/// This thread's CPU is the reader's from now on.
pub fn begin_read(cpu: ReaderCpu) {
    READER.with(|reader| *reader.borrow_mut() = Some(cpu));
}

/// The reader is done.
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

/// Called before each access: the writer's event may be due.
pub fn operation() {
    let due = WRITER.with(|writer| {
        let mut writer = writer.borrow_mut();
        let cpu = writer.as_mut()?;
        let now = cpu.next;
        cpu.next += 1;
        if now == cpu.at {
            cpu.event.take()
        } else {
            None
        }
    });
    match due {
        None => {}
        Some(Event::Record(work)) => work(),
        Some(Event::Interrupt(requests)) => {
            let request = requests.recv().expect("the reader's end is kept");
            if request == Request::Barrier {
                fence(Ordering::SeqCst);
                WRITER.with(|writer| {
                    let writer = writer.borrow();
                    let answers = writer.as_ref().and_then(|cpu| cpu.answers.as_ref());
                    answers
                        .expect("a line")
                        .send(())
                        .expect("the reader's end is kept");
                });
            }
        }
    }
}

/// The reader's request: returns when the writer's CPU has executed a full barrier.
pub fn interrupt() {
    READER.with(|reader| {
        let mut reader = reader.borrow_mut();
        let Some(cpu) = reader.as_mut() else {
            // Nobody writes any more.
            return;
        };
        cpu.asked += 1;
        if cpu.asked == 1 {
            cpu.requests
                .send(Request::Barrier)
                .expect("the writer's end is kept");
        }
        if cpu.asked <= 2 {
            cpu.answers.recv().expect("the writer's end is kept");
        }
    });
}
