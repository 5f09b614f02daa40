// SPDX-License-Identifier: GPL-2.0

//! The lines: one for each system call, at its end, and one for each other event.
//!
//! A call stays one line if another thread's line is between its begin and its end. strace cuts the call in two there.
//! On many CPUs this would cut nearly each call, and a search would not find all of it.

use super::argument::{show_moved, write_arguments, Argument};
use super::arguments::{End, EventKind, FileOf, Form};
use super::call_filter::Values;
use super::calls::{Begin, Calls, PendingCall};
use super::frames::Frames;
use super::output::Output;
use super::requests::Shown;
use super::told::{dumps_core, Moved, Told, SIGKILL};
use super::who::Who;
use analysis::integer;
use analysis::tasks::Serial;
use ctf::{Clock, Event};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{Arguments, Display, Write};
use terminal::date::{self, Days};
use terminal::{duration, printable};

/// Writer of lines, with the calls that have not ended.
pub struct Page {
    /// Destination of the lines.
    pub output: Output,
    /// The trace's clock.
    pub clock: Clock,
    /// The calls that have not ended.
    pub calls: Calls,
    /// The call stacks below the lines, if they are printed.
    pub frames: Option<Frames>,
    /// The lines of signals that were sent and did not reach the thread yet, by thread and signal.
    sent: HashMap<(i64, u64), String>,
    /// Maximum number of shown bytes that a call moves.
    bytes: usize,
    /// Bytes that a call of the thread moves, before the begin or the end of the call.
    moved: HashMap<Serial, Moved>,
    /// Time of the last line.
    now: u64,
    days: Days,
}

impl Page {
    /// A writer without calls, for a trace with this clock. It shows `bytes` bytes that a call moves at most.
    pub fn new(output: Output, clock: Clock, bytes: usize) -> Self {
        Self {
            output,
            clock,
            calls: Calls::default(),
            frames: None,
            sent: HashMap::new(),
            bytes,
            moved: HashMap::new(),
            now: 0,
            days: Days::default(),
        }
    }

    /// Returns the current time, in clock ticks.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Advances the current time to `time`, unless the current time is later.
    pub fn reach(&mut self, time: u64) {
        self.now = self.now.max(time);
    }

    /// Writes a line for a loss or a fault, between the events.
    pub fn note(&mut self, what: &impl Display) {
        let time = self.time();
        self.push(format_args!("{time} {what}\n"));
    }

    /// Writes an event of this form. The arguments are the event's task, whether the event ends the last call of its
    /// thread, and the files of descriptors.
    pub fn event(
        &mut self,
        form: &Form,
        who: Who,
        is_end: bool,
        event: &Event<'_>,
        file_of: &mut FileOf<'_>,
    ) {
        self.now = event.timestamp;
        match form.kind {
            EventKind::Event => {
                let is_wanted = form.wanted.as_ref().is_none_or(|wanted| {
                    let mut values = Values::default();
                    wanted.note(&mut values, event, false);
                    wanted.wants(&values)
                });
                if !is_wanted {
                    return;
                }
                if let Some(told) = &form.told {
                    self.tell(form, told, &who, event);
                    return;
                }
                let took = form.duration_ns(event).map(duration);
                self.head(took.as_deref().unwrap_or_default(), &who);
                self.output.text.push_str(&form.name(event));
                write_arguments(&mut self.output.text, form.arguments(event, file_of));
                self.close(form, who.tid, event);
            }
            EventKind::Entry(end) => self.entry(form, end, who, event, file_of),
            EventKind::Exit { ret, id } => {
                // The end of rt_sigreturn: the result is a register of the interrupted code.
                let is_return = id.is_some_and(|id| integer(event.value(id)) == Some(-1));
                let ret = (!is_return).then_some(ret);
                self.exit(form, (ret, is_end), who, event, file_of);
            }
        }
    }

    /// Writes an event in strace's form.
    fn tell(&mut self, form: &Form, told: &Told, who: &Who, event: &Event<'_>) {
        if let (Some(moved), Some(thread)) = (told.moved(event, self.bytes), who.serial) {
            self.moved(thread, moved);
        }
        if let Some(sent) = told.sent(event) {
            self.sent.insert((sent.tid, sent.signal), sent.text);
        }
        if let (Some(signal), Some(tid)) = (told.delivered(event), who.tid) {
            self.sent.remove(&(tid, signal));
        }
        let mut texts = Vec::new();
        if let Some((tid, signal)) = told.end(event) {
            // A signal whose default action ends a process does not reach the process.
            let fatal = self.sent.remove(&(tid, signal));
            texts.extend(fatal.filter(|_| signal != SIGKILL && !dumps_core(signal)));
            self.sent.retain(|(target, _), _| *target != tid);
        }
        texts.extend(told.text(event));
        for text in texts {
            self.head("", who);
            self.output.text.push_str(&text);
            self.close(form, who.tid, event);
        }
    }

    /// Writes a request of io_uring. `by` is the thread of the event that ended it, whose contexts follow.
    pub fn request(&mut self, shown: &Shown, by: &Who, end: Option<(&Form, &Event<'_>)>) {
        let since = match shown {
            Shown::Posted(posted) => posted.request.as_ref().map(|request| request.since),
            Shown::Open(_) => None,
        };
        let ticks = since.map(|since| self.now.saturating_sub(since));
        let took = ticks.map(|ticks| duration(self.clock.nanoseconds(ticks)));
        let who = shown.who();
        self.head(
            took.as_deref().unwrap_or_default(),
            who.as_ref().unwrap_or(by),
        );
        shown.write(&mut self.output.text, by);
        match end.filter(|_| matches!(shown, Shown::Posted(_))) {
            Some((form, event)) => self.close(form, by.tid, event),
            None => self.output.text.push('\n'),
        }
    }

    /// Takes bytes that a call of a thread moves.
    fn moved(&mut self, thread: Serial, moved: Moved) {
        match self.calls.of_thread(thread) {
            Some(call) if moved.is_given && call.name == moved.call => {
                show_moved(&mut call.arguments, &moved);
            }
            _ => {
                self.moved.insert(thread, moved);
            }
        }
    }

    /// Takes the bytes that this call of a thread moves, if they are known.
    fn take_moved(&mut self, thread: Option<Serial>, call: &str, is_begin: bool) -> Option<Moved> {
        let moved = self.moved.remove(&thread?);
        moved.filter(|moved| moved.call == call && moved.is_given == is_begin)
    }

    /// A thread executes a program: the calls of the other threads of its process do not end.
    pub fn exec(&mut self, process: i64, who: &Who, time: u64) {
        self.now = time;
        for call in self.calls.of_others(process, who.serial) {
            self.unfinished(call);
        }
    }

    /// Ends the trace: the calls that have begun do not end.
    pub fn end(&mut self) {
        for call in self.calls.rest() {
            self.unfinished(call);
        }
    }

    fn entry(
        &mut self,
        form: &Form,
        end: End,
        who: Who,
        event: &Event<'_>,
        file_of: &mut FileOf<'_>,
    ) {
        let mut call = PendingCall {
            name: form.name(event).into_owned(),
            arguments: form.arguments(event, file_of),
            decider: form.decider(event),
            since: event.timestamp,
            who,
            wanted: form.wanted.clone(),
            values: Values::default(),
        };
        if let Some(moved) = self.take_moved(call.who.serial, &call.name, true) {
            show_moved(&mut call.arguments, &moved);
        }
        if let Some(wanted) = &call.wanted {
            wanted.note(&mut call.values, event, false);
        }
        if let (Some(thread), End::Recorded) = (call.who.serial, end) {
            if let Some(before) = self.calls.begin(thread, call) {
                self.unfinished(before);
            }
            return;
        }
        let who = call.who.clone();
        if call.is_wanted() {
            self.head("", &who);
            self.output.text.push_str(&call.name);
            write_arguments(&mut self.output.text, call.arguments);
            self.output.text.push_str(match end {
                End::Recorded => " <unfinished ...>",
                End::Unrecorded => "",
                End::Never => " = ?",
            });
            self.close(form, who.tid, event);
        }
        // The calls of the process's other threads do not end either.
        if let Some(process) = who.pid.filter(|_| form.is_called("exit_group")) {
            for call in self.calls.of_process(process) {
                self.unfinished(call);
            }
        }
    }

    /// Writes the end of a call, with the result in the field `ret`, if it has one. `is_end`: the call is the last one
    /// that its thread began.
    fn exit(
        &mut self,
        form: &Form,
        (ret, is_end): (Option<usize>, bool),
        mut who: Who,
        event: &Event<'_>,
        file_of: &mut FileOf<'_>,
    ) {
        let name = ret.map(|_| form.name(event));
        let begin = match who.serial {
            Some(thread) => self.calls.end(thread, name.as_deref(), is_end),
            None => Begin::Unknown,
        };
        let mut values = match &begin {
            Begin::Known(call) => call.values.clone(),
            Begin::Other(_) | Begin::Unknown => Values::default(),
        };
        let is_wanted = form.wanted.as_ref().is_none_or(|wanted| {
            wanted.note(&mut values, event, true);
            // Without `ret`, the register in place of a result is no result.
            ret.is_some() && wanted.wants(&values)
        });
        if !is_wanted {
            if let Begin::Other(call) = begin {
                self.unfinished(call);
            }
            return;
        }
        let mut arguments = form.arguments(event, file_of);
        let moved = name
            .as_ref()
            .and_then(|name| self.take_moved(who.serial, name, false));
        let show = |arguments: &mut [Argument]| {
            moved.iter().for_each(|moved| show_moved(arguments, moved));
        };
        let decider = match &begin {
            Begin::Known(call) => call.decider,
            Begin::Other(_) | Begin::Unknown => None,
        };
        let name = match begin {
            Begin::Known(mut call) => {
                let took = event.timestamp.saturating_sub(call.since);
                // Prefer the name at the end: a call may change it. The name at the begin is the fallback.
                who.comm = who.comm.or(call.who.comm);
                self.head(&duration(self.clock.nanoseconds(took)), &who);
                self.output.text.push_str(&call.name);
                // The number of an unknown call is in both events.
                arguments.retain(|argument| !call.arguments.contains(argument));
                call.arguments.append(&mut arguments);
                show(&mut call.arguments);
                write_arguments(&mut self.output.text, call.arguments);
                call.name
            }
            begin => {
                if let Begin::Other(call) = begin {
                    self.unfinished(call);
                }
                let name = name.unwrap_or(Cow::Borrowed("rt_sigreturn"));
                self.head("", &who);
                self.push(format_args!("<... {name} resumed>"));
                show(&mut arguments);
                if !arguments.is_empty() {
                    write_arguments(&mut self.output.text, arguments);
                }
                name.into_owned()
            }
        };
        self.output.text.push_str(" = ");
        let value = ret.and_then(|ret| event.value(ret));
        form.write_result(&mut self.output.text, (&name, decider), value, file_of);
        self.close(form, who.tid, event);
    }

    fn unfinished(&mut self, call: PendingCall) {
        if !call.is_wanted() {
            return;
        }
        self.head("", &call.who);
        self.output.text.push_str(&call.name);
        write_arguments(&mut self.output.text, call.arguments);
        self.output.text.push_str(" <unfinished ...>\n");
    }

    /// Writes the begin of a line.
    fn head(&mut self, took: &str, who: &Who) {
        let time = self.time();
        let comm = who.comm.as_deref().map_or("?".into(), printable);
        let tid = who
            .tid
            .map_or_else(|| "?".to_owned(), |tid| tid.to_string());
        self.push(format_args!("{time} {took:>10} {comm}/{tid} "));
    }

    /// Writes the end of a line of an event of this thread, and the call stack.
    fn close(&mut self, form: &Form, tid: Option<i64>, event: &Event<'_>) {
        form.write_contexts(&mut self.output.text, event);
        self.output.text.push('\n');
        if let (Some(frames), Some(tid)) = (&mut self.frames, tid) {
            let stacks = (&form.stacks, tid);
            frames.write(&mut self.output.text, &self.clock, stacks, event);
        }
    }

    /// The time of the day. If the date differs from that of the last line, the result begins with a line with the
    /// date.
    fn time(&mut self) -> String {
        let now = self.clock.since_epoch(self.now);
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        if let Some(day) = self.days.new_day(now) {
            self.push(format_args!("{day}\n"));
        }
        date::time_of_day(now)
    }

    /// Appends text. Writing to a String cannot fail.
    fn push(&mut self, text: Arguments<'_>) {
        let _ = self.output.text.write_fmt(text);
    }
}
