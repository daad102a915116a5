// SPDX-License-Identifier: Apache-2.0

//! The frames of a command's connection.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use super::Request;

/// Maximum payload length of a frame.
const PAYLOAD_MAX: usize = 1 << 20;
/// One byte for the kind, four for the length.
const HEADER_LEN: usize = 5;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// To the inside, first: the command to run.
    Request(Request),
    /// To the inside: standard input.
    Stdin(Bytes),
    /// To the inside: standard input has ended.
    StdinEnd,
    /// To the inside: the terminal's size has changed.
    Resize {
        /// Lines.
        rows: u16,
        /// Characters per line.
        columns: u16,
    },
    /// To the inside: a signal for the command's process group.
    Signal(i32),
    /// From the inside: standard output, or the terminal's output.
    Stdout(Bytes),
    /// From the inside: standard error.
    Stderr(Bytes),
    /// From the inside, last: the exit status (128 + signal if a signal killed the command).
    Exit(i32),
    /// From the inside, last: why the command could not run.
    Error(String),
}

const REQUEST: u8 = 0;
const STDIN: u8 = 1;
const STDIN_END: u8 = 2;
const RESIZE: u8 = 3;
const SIGNAL: u8 = 4;
const STDOUT: u8 = 5;
const STDERR: u8 = 6;
const EXIT: u8 = 7;
const ERROR: u8 = 8;

/// Encodes and decodes frames.
#[derive(Debug, Default)]
pub struct FrameCodec;

impl Encoder<Frame> for FrameCodec {
    type Error = io::Error;

    fn encode(&mut self, frame: Frame, out: &mut BytesMut) -> io::Result<()> {
        let (kind, payload) = match frame {
            Frame::Request(request) => (REQUEST, serde_json::to_vec(&request)?.into()),
            Frame::Stdin(data) => (STDIN, data),
            Frame::StdinEnd => (STDIN_END, Bytes::new()),
            Frame::Resize { rows, columns } => {
                let size = [rows.to_be_bytes(), columns.to_be_bytes()].concat();
                (RESIZE, size.into())
            }
            Frame::Signal(signal) => (SIGNAL, Bytes::copy_from_slice(&signal.to_be_bytes())),
            Frame::Stdout(data) => (STDOUT, data),
            Frame::Stderr(data) => (STDERR, data),
            Frame::Exit(code) => (EXIT, Bytes::copy_from_slice(&code.to_be_bytes())),
            Frame::Error(text) => (ERROR, text.into()),
        };
        let length = u32::try_from(payload.len())
            .ok()
            .filter(|&length| length as usize <= PAYLOAD_MAX)
            .ok_or_else(|| malformed("frame too long"))?;
        out.reserve(HEADER_LEN + payload.len());
        out.put_u8(kind);
        out.put_u32(length);
        out.put(payload);
        Ok(())
    }
}

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, input: &mut BytesMut) -> io::Result<Option<Frame>> {
        let Some(&[kind, l0, l1, l2, l3]) = input.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        if length > PAYLOAD_MAX {
            return Err(malformed("frame too long"));
        }
        if input.len() < HEADER_LEN + length {
            input.reserve(HEADER_LEN + length - input.len());
            return Ok(None);
        }
        input.advance(HEADER_LEN);
        let payload = input.split_to(length).freeze();
        Ok(Some(match kind {
            REQUEST => Frame::Request(serde_json::from_slice(&payload)?),
            STDIN => Frame::Stdin(payload),
            STDIN_END => Frame::StdinEnd,
            RESIZE => {
                let [r0, r1, c0, c1] = exactly(&payload)?;
                Frame::Resize {
                    rows: u16::from_be_bytes([r0, r1]),
                    columns: u16::from_be_bytes([c0, c1]),
                }
            }
            SIGNAL => Frame::Signal(i32::from_be_bytes(exactly(&payload)?)),
            STDOUT => Frame::Stdout(payload),
            STDERR => Frame::Stderr(payload),
            EXIT => Frame::Exit(i32::from_be_bytes(exactly(&payload)?)),
            ERROR => Frame::Error(String::from_utf8_lossy(&payload).into_owned()),
            _ => return Err(malformed("frame of unknown kind")),
        }))
    }
}

fn exactly<const N: usize>(payload: &[u8]) -> io::Result<[u8; N]> {
    payload
        .try_into()
        .map_err(|_| malformed("frame of wrong length"))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::ExecRequest;

    #[test]
    fn every_frame_survives_its_encoding_byte_by_byte() {
        let frames = [
            Frame::Request(Request::Command(ExecRequest {
                argv: vec!["ping".into(), "-c1".into()],
                host: Some("h1_1".into()),
                ..ExecRequest::default()
            })),
            Frame::Request(Request::Mininet { terminal: true }),
            Frame::Stdin(Bytes::from_static(b"in")),
            Frame::StdinEnd,
            Frame::Resize {
                rows: 24,
                columns: 80,
            },
            Frame::Signal(2),
            Frame::Stdout(Bytes::from_static(b"out")),
            Frame::Stderr(Bytes::new()),
            Frame::Exit(-1),
            Frame::Error("no such host".into()),
        ];
        let mut bytes = BytesMut::new();
        for frame in frames.clone() {
            FrameCodec.encode(frame, &mut bytes).unwrap();
        }
        let mut arrived = BytesMut::new();
        let mut decoded = Vec::new();
        for byte in bytes {
            arrived.put_u8(byte);
            decoded.extend(FrameCodec.decode(&mut arrived).unwrap());
        }
        assert_eq!(decoded, frames);
    }

    #[test]
    fn nonsense_is_refused_and_not_waited_for() {
        for bytes in [
            &[STDIN, 0xff, 0xff, 0xff, 0xff][..],
            &[99, 0, 0, 0, 0],
            &[SIGNAL, 0, 0, 0, 1, 7],
            &[REQUEST, 0, 0, 0, 1, b'x'],
        ] {
            let mut input = BytesMut::from(bytes);
            assert!(FrameCodec.decode(&mut input).is_err(), "{bytes:?}");
        }
    }
}
