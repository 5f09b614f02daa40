// SPDX-License-Identifier: GPL-2.0

//! TLS, with certificates of both sides.

mod common;

use common::{filled, notice, open_to, stopper, temporary, Running, RETRY};
use consumer::{End, State};
use network::{Credentials, Peer, Security, Sender};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};
use store::OutputOptions;
use synthetic::fake::packet;
use synthetic::UUID;
use uuid::Uuid;

/// A certificate authority, and the certificates that it signs, as files.
struct Authority {
    dir: PathBuf,
    ca: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(dir: &Path) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate: Certificate = params.self_signed(&key).unwrap();
        let ca = dir.join("ca.pem");
        fs::create_dir_all(dir).unwrap();
        fs::write(&ca, certificate.pem()).unwrap();
        Self {
            dir: dir.to_owned(),
            ca,
            issuer: Issuer::new(params, key),
        }
    }

    /// Signs a certificate for this name.
    fn sign(&self, name: &str) -> Credentials {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |end: &str| self.dir.join(format!("{name}.{end}"));
        let (cert, key_file) = (file("pem"), file("key"));
        fs::write(&cert, certificate.pem()).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        Credentials {
            ca: self.ca.clone(),
            cert,
            key: key_file,
        }
    }
}

fn receiver(dir: &Path, credentials: &Credentials) -> Running {
    let security = Security::Tls(credentials.server().unwrap());
    let options = OutputOptions::default();
    Running::start_at("127.0.0.1:0", dir, security, options)
}

#[test]
fn a_trace_arrives_byte_by_byte() {
    let dir = temporary();
    let authority = Authority::new(&dir.path().join("keys"));
    let receiver = receiver(&dir.path().join("traces"), &authority.sign("127.0.0.1"));
    let make = |cpu, sequence| packet(cpu, sequence, 5000 << (sequence % 8));
    let (channel, expected) = filled(3, 20, make);
    let client = authority.sign("web1").client().unwrap();
    let peer = Peer::new(receiver.address.clone(), Security::Tls(client));
    let (stop, _keep) = stopper();
    let (mut consumer, _) = open_to(&channel, peer, &stop).unwrap();
    assert_eq!(consumer.run(&stop).unwrap(), End::Over);
    consumer.into_sink().end(State::Over, 0, "").unwrap();
    for (cpu, expected) in (0..).zip(&expected) {
        assert!(receiver.file(cpu) == *expected, "CPU {cpu}");
    }
}

#[test]
fn who_has_no_certificate_of_the_authority_is_refused() {
    let dir = temporary();
    let authority = Authority::new(&dir.path().join("keys"));
    let stranger = Authority::new(&dir.path().join("strange"));
    let server = authority.sign("127.0.0.1");
    let receiver = receiver(&dir.path().join("traces"), &server);
    let refusal = |security| {
        let peer = Peer::new(receiver.address.clone(), security);
        let (stop, _keep) = stopper();
        let (notice, messages) = notice();
        let uuid = Uuid::from_bytes(UUID);
        let begun = Sender::begin(peer, uuid, Vec::new(), RETRY, stop, notice);
        begun.map_or_else(|e| e.to_string(), |_| format!("begun: {messages:?}"))
    };
    // Another authority has signed the sender's certificate, but the sender trusts the receiver's.
    let mixed = Credentials {
        ca: authority.ca.clone(),
        ..stranger.sign("web1")
    };
    let error = refusal(Security::Tls(mixed.client().unwrap()));
    let is_refused_by_it =
        |error: &str| error.starts_with("cannot send") && !error.contains("Connection refused");
    assert!(is_refused_by_it(&error), "{error}");
    // The sender does not trust the authority of the receiver's certificate.
    let other = stranger.sign("web1");
    let error = refusal(Security::Tls(other.client().unwrap()));
    assert!(error.contains("invalid peer certificate"), "{error}");
    // Without encryption.
    let error = refusal(Security::Plain);
    assert!(is_refused_by_it(&error), "{error}");
    // The right authority, but another machine's certificate.
    let impostor = self::receiver(&dir.path().join("impostor"), &authority.sign("web2"));
    let client = authority.sign("web1").client().unwrap();
    let peer = Peer::new(impostor.address.clone(), Security::Tls(client));
    let (stop, _keep) = stopper();
    let uuid = Uuid::from_bytes(UUID);
    let error = Sender::begin(peer, uuid, Vec::new(), RETRY, stop, notice().0).unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
    assert!(!receiver.trace().exists());
    // The receiver was running all the time: a sender with a certificate of the authority is accepted.
    let sound = authority.sign("web1");
    let begun = refusal(Security::Tls(sound.client().unwrap()));
    assert!(begun.starts_with("begun"), "{begun}");
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let dir = temporary();
    let authority = Authority::new(dir.path());
    let good = authority.sign("web1");
    let bad = dir.path().join("bad");
    fs::write(&bad, "rubbish").unwrap();
    for wrong in [
        Credentials {
            ca: bad.clone(),
            ..good.clone()
        },
        Credentials {
            cert: bad.clone(),
            ..good.clone()
        },
        Credentials {
            key: bad.clone(),
            ..good.clone()
        },
    ] {
        for error in [wrong.client().unwrap_err(), wrong.server().unwrap_err()] {
            assert!(error.contains(&*bad.to_string_lossy()), "{error}");
        }
    }
}
