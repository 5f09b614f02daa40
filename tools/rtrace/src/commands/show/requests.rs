// SPDX-License-Identifier: GPL-2.0

//! Lines of requests of io_uring: one for each request, at its result, as a system call has one at its end.

use super::arguments::{push, write_file};
use super::who::Who;
use analysis::uring::{Posted, Request, RequestFile};
use system::printing;

/// The events of requests.
pub const EVENTS: [&str; 6] = [
    "io_uring_submit_req",
    "io_uring_req_failed",
    "io_uring_file_get",
    "io_uring_queue_async_work",
    "io_uring_complete",
    "io_uring_cqe_overflow",
];

/// A request with its result, or one of the two.
#[derive(Debug)]
pub enum Shown {
    /// A result, and the request, if its begin is known.
    Posted(Posted),
    /// A request whose result is not in the trace.
    Open(Request),
}

impl Shown {
    /// The request, if it is known.
    pub fn request(&self) -> Option<&Request> {
        match self {
            Self::Posted(posted) => posted.request.as_ref(),
            Self::Open(request) => Some(request),
        }
    }

    /// The thread that took the request out of the ring, if the request is known.
    pub fn who(&self) -> Option<Who> {
        self.request().map(|request| Who {
            tid: request.tid,
            serial: None,
            pid: request.owner.pid(),
            comm: request
                .comm
                .as_deref()
                .map(|comm| printing::text(comm).into_owned()),
        })
    }

    /// Writes the request and its result. `by` is the thread that put the result into the ring.
    pub fn write(&self, out: &mut String, by: &Who) {
        match self.request() {
            Some(request) => write_request(out, request),
            None => out.push_str("<... io_uring resumed>("),
        }
        match self {
            Self::Open(_) => out.push_str(") <unfinished ...>"),
            Self::Posted(posted) => {
                if posted.request.is_none() {
                    push(out, format_args!("user_data: {:#x}", posted.user_data));
                }
                out.push_str(") = ");
                match posted.res {
                    -4095..=-1 => decode::write_error(out, -posted.res),
                    res => push(out, format_args!("{res}")),
                }
                if posted.flags & 0xffff != 0 {
                    out.push_str(" (");
                    decode::RESULT_FLAGS.write(out, posted.flags & 0xffff);
                    out.push(')');
                }
                let taker = posted.request.as_ref().and_then(|request| request.tid);
                if let (Some(taker), Some(tid)) = (taker, by.tid) {
                    if taker != tid {
                        let comm = by.comm.as_deref().map_or("?".into(), printing::printable);
                        push(out, format_args!(" by {comm}/{tid}"));
                    }
                }
            }
        }
    }
}

/// Writes a request without the end of its list of arguments.
fn write_request(out: &mut String, request: &Request) {
    push(
        out,
        format_args!("io_uring {}(", printing::printable(&request.operation)),
    );
    match &request.file {
        RequestFile::None => {}
        RequestFile::Fixed => out.push_str("fd: [fixed file], "),
        RequestFile::Descriptor(fd, file) => {
            push(out, format_args!("fd: {fd}"));
            write_file(out, *fd as u64, &mut |_| file.clone());
            out.push_str(", ");
        }
    }
    push(out, format_args!("user_data: {:#x}", request.user_data));
    // The kernel keeps flags of its own above those of the program.
    if request.flags & 0xff != 0 {
        out.push_str(", flags: ");
        decode::REQUEST_FLAGS.write(out, request.flags & 0xff);
    }
}
