// SPDX-License-Identifier: GPL-2.0

use super::*;
use rustix::net::{bind, connect, socket, AddressFamily, SocketType};
use rustix::pipe::pipe;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;

/// Larger than the buffers of both sockets.
const LARGE: usize = 64 << 20;

const PATIENT: Limits = Limits {
    connections: 4,
    of_peer: 2,
    time: Duration::from_secs(3600),
    rate: usize::MAX,
};

/// A server in a thread, until this is dropped.
struct Running {
    address: SocketAddr,
    stopper: Option<OwnedFd>,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
    notices: mpsc::Receiver<String>,
}

impl Running {
    fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopper) = pipe().unwrap();
        let (notice, notices) = mpsc::channel();
        let answer = |request: &Request<'_>| match request.path {
            "/slow" => {
                thread::sleep(Duration::from_secs(3));
                Answer::ok("text/plain", b"slow")
            }
            "/large" => Answer::ok("text/plain", vec![0; LARGE]),
            path => Answer::ok("text/plain", path.as_bytes().to_vec()),
        };
        let serve = move || {
            let stop = Some(stop.as_fd());
            let notice = |text: &str| notice.send(text.to_owned()).unwrap();
            serve(&limits, &listener, stop, Ok, answer, notice)
        };
        Self {
            address,
            stopper: Some(stopper),
            thread: Some(thread::spawn(serve)),
            notices,
        }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Connects from another address of the loopback device.
    fn connect_from(&self, from: &str) -> TcpStream {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let from: IpAddr = from.parse().unwrap();
        bind(&socket, &SocketAddr::new(from, 0)).unwrap();
        connect(&socket, &self.address).unwrap();
        socket.into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stopper.take());
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

/// The answer; empty if the server has closed the connection.
fn get(mut client: TcpStream) -> String {
    let _ = client.write_all(b"GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut answer = String::new();
    let _ = client.read_to_string(&mut answer);
    answer
}

fn is_served(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n/a?b")
}

/// Waits until the server has ended a connection.
fn wait_for_end(mut client: &TcpStream) {
    let mut rest = [0; 4096];
    while client.read(&mut rest).is_ok_and(|read| read > 0) {}
}

#[test]
fn a_client_that_drips_a_request_is_cut_off() {
    let limits = Limits {
        time: Duration::from_millis(200),
        ..PATIENT
    };
    let server = Running::start(limits);
    let mut client = server.connect();
    client.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
    let began = Instant::now();
    while client.write_all(b"x").is_ok() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it is still read"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_client_that_does_not_take_the_answer_is_cut_off() {
    let limits = Limits {
        of_peer: 1,
        time: Duration::from_secs(1),
        ..PATIENT
    };
    let server = Running::start(limits);
    let mut deaf = server.connect();
    deaf.write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
    deaf.read_exact(&mut [0; 1]).unwrap();
    let began = Instant::now();
    // Its slot is free as soon as it is cut off.
    while !is_served(&get(server.connect())) {
        assert!(began.elapsed() < Duration::from_secs(60), "it has the slot");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_time_of_the_server_is_not_that_of_the_client() {
    let limits = Limits {
        time: Duration::from_secs(1),
        ..PATIENT
    };
    let server = Running::start(limits);
    let began = Instant::now();
    let mut answer = String::new();
    while !answer.ends_with("slow") {
        assert!(began.elapsed() < Duration::from_secs(60), "{answer}");
        let mut client = server.connect();
        client.write_all(b"GET /slow HTTP/1.1\r\n\r\n").unwrap();
        answer.clear();
        let _ = client.read_to_string(&mut answer);
    }
}

#[test]
fn a_stop_ends_clients_that_hang() {
    let server = Running::start(PATIENT);
    let (silent, mut half) = (server.connect(), server.connect_from("127.0.0.2"));
    half.write_all(b"GET / HT").unwrap();
    let mut deaf = server.connect_from("127.0.0.3");
    deaf.write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
    deaf.read_exact(&mut [0; 1]).unwrap();
    assert!(is_served(&get(server.connect())));
    // Joins the server's thread.
    drop(server);
    [silent, half, deaf].iter().for_each(wait_for_end);
}

#[test]
fn the_connections_of_one_peer_leave_others_to_other_peers() {
    let server = Running::start(PATIENT);
    let held = [server.connect(), server.connect()];
    // Refused: the peer has its two.
    assert_eq!(get(server.connect()), "");
    let notice = server.notices.recv().unwrap();
    assert!(notice.contains("127.0.0.1 has 2 connections"), "{notice}");
    let others = [
        server.connect_from("127.0.0.2"),
        server.connect_from("127.0.0.3"),
    ];
    assert_eq!(get(server.connect_from("127.0.0.4")), "");
    let notice = server.notices.recv().unwrap();
    assert!(notice.contains("all clients have 4"), "{notice}");
    assert!(others.into_iter().all(|other| is_served(&get(other))));
    drop(held);
    // The slots are free as soon as the server has seen the ends.
    while !is_served(&get(server.connect())) {
        thread::yield_now();
    }
}

#[test]
fn requests_are_answered() {
    let answer = |request: &Request<'_>| {
        let hosts: Vec<_> = request.headers("Host").collect();
        Answer::ok(
            "text/plain",
            [request.path.as_bytes(), &hosts.concat()].concat(),
        )
    };
    let status = |mut bytes: &[u8]| {
        let answer = read(&mut bytes, answer).unwrap();
        answer.map(|answer| {
            (
                answer.status,
                String::from_utf8(answer.body.into()).unwrap(),
            )
        })
    };
    let line = "GET /a?b HTTP/1.1\r\n";
    assert_eq!(status(line.as_bytes()), None);
    let text = format!("{line}host: a\r\nX: y\r\nHOST: b\r\n\r\n");
    assert_eq!(
        status(text.as_bytes()),
        Some(("200 OK", "/a?bab".to_owned()))
    );
    let most = HEAD - line.len() - "X: \r\n\r\n".len();
    for (text, expected) in [
        (
            "POST / HTTP/1.1\r\n\r\n".to_owned(),
            "405 Method Not Allowed",
        ),
        ("GET\r\n\r\n".to_owned(), "400 Bad Request"),
        (
            format!("{line}{}\r\n", "X: y\r\n".repeat(65)),
            "400 Bad Request",
        ),
        (format!("{line}X: {}\r\n\r\n", "x".repeat(most)), "200 OK"),
        (
            format!("{line}X: {}\r\n\r\n", "x".repeat(most + 1)),
            "431 Request Header Fields Too Large",
        ),
    ] {
        assert_eq!(status(text.as_bytes()).unwrap().0, expected, "{text}");
    }
}
