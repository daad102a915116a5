// SPDX-License-Identifier: Apache-2.0

//! Flow control on the serial line.
//!
//! User-Mode Linux fails on a line that overflows. It stops listening to a line whose terminal was
//! throttled because it was read too slowly, and may sleep forever on a line whose other end was
//! read too slowly. So neither end ever sends more than the other can buffer: each end
//! acknowledges what it has read.
//!
//! Bytes are sent in frames: kind, length, payload. An acknowledgement has no payload; its length
//! is the amount that was read, in units of [`cost`].

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

/// Window towards the inside, as a cost. A terminal buffers 4096 bytes and throttles when 128 are
/// left; acknowledgements need some as well.
const WINDOW_TO_INSIDE: usize = 3072;
/// Window towards the outside, as a cost: a tenth of what a socket buffers.
const WINDOW_TO_OUTSIDE: usize = 32 << 10;
/// Cost of a short frame. Sockets account for buffers, not for bytes.
const COST_MIN: usize = 512;
/// Buffer between the line and its user.
const BUFFER: usize = 64 << 10;
/// Maximum payload of a frame.
const PAYLOAD_MAX: usize = 16 << 10;
const HEADER_LEN: usize = 3;
const DATA: u8 = 0;
const ACK: u8 = 1;

/// One of the two ends of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end of the launcher.
    Outside,
    /// The end of the lab.
    Inside,
}

impl End {
    fn window(self) -> usize {
        match self {
            Self::Outside => WINDOW_TO_INSIDE,
            Self::Inside => WINDOW_TO_OUTSIDE,
        }
    }
}

/// Cost of a frame with a payload of `bytes`.
fn cost(bytes: usize) -> usize {
    COST_MIN.max(HEADER_LEN + bytes)
}

/// Turns a serial line into a reliable stream. The future carries the bytes until either side
/// ends.
pub fn reliable<L>(line: L, end: End) -> (DuplexStream, impl Future<Output = io::Result<()>>)
where
    L: AsyncRead + AsyncWrite,
{
    let (user, carrier) = tokio::io::duplex(BUFFER);
    (user, carry(line, carrier, end))
}

async fn carry<L>(line: L, user: DuplexStream, end: End) -> io::Result<()>
where
    L: AsyncRead + AsyncWrite,
{
    let (mut line_reader, mut line_writer) = tokio::io::split(line);
    let (mut user_reader, mut user_writer) = tokio::io::split(user);
    let mut received = BytesMut::with_capacity(BUFFER);
    let mut frame = vec![0; HEADER_LEN + PAYLOAD_MAX];
    let mut in_flight = 0;
    loop {
        let free = end.window() - in_flight;
        let room = if free < COST_MIN {
            0
        } else {
            PAYLOAD_MAX.min(free - HEADER_LEN)
        };
        let payload = &mut frame[HEADER_LEN..HEADER_LEN + room];
        tokio::select! {
            read = line_reader.read_buf(&mut received) => {
                if read? == 0 {
                    return Ok(());
                }
                let mut taken = 0;
                while let Some(arrived) = next_frame(&mut received)? {
                    match arrived {
                        Frame::Data(data) => {
                            user_writer.write_all(&data).await?;
                            taken += cost(data.len());
                        }
                        Frame::Ack(cost) => in_flight = in_flight.saturating_sub(cost),
                    }
                }
                if taken > 0 {
                    let taken = u16::try_from(taken).unwrap_or(u16::MAX);
                    line_writer.write_all(&header(ACK, taken)).await?;
                }
            }
            read = user_reader.read(payload), if room > 0 => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                let bytes = u16::try_from(read).unwrap_or(u16::MAX);
                frame[..HEADER_LEN].copy_from_slice(&header(DATA, bytes));
                line_writer.write_all(&frame[..HEADER_LEN + read]).await?;
                in_flight += cost(read);
            }
        }
    }
}

enum Frame {
    Data(BytesMut),
    Ack(usize),
}

fn next_frame(received: &mut BytesMut) -> io::Result<Option<Frame>> {
    let Some(&[kind, l0, l1]) = received.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    match kind {
        ACK => {
            received.advance(HEADER_LEN);
            Ok(Some(Frame::Ack(length)))
        }
        DATA if received.len() < HEADER_LEN + length => Ok(None),
        DATA => {
            received.advance(HEADER_LEN);
            Ok(Some(Frame::Data(received.split_to(length))))
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the serial line lost bytes",
        )),
    }
}

fn header(kind: u8, length: u16) -> [u8; HEADER_LEN] {
    let [l0, l1] = length.to_be_bytes();
    [kind, l0, l1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies bytes to the inside, and records the maximum in flight.
    #[tokio::test(flavor = "current_thread")]
    async fn the_inside_is_never_sent_more_than_its_terminal_holds() {
        let (outside_line, mut terminal) = tokio::io::duplex(1 << 20);
        let (mut outside, carry) = reliable(outside_line, End::Outside);
        let carry = tokio::spawn(carry);
        outside.write_all(&[7; 10_000]).await.unwrap();
        let mut arrived = BytesMut::new();
        let mut payload = 0;
        while payload < 10_000 {
            tokio::task::yield_now().await;
            let waiting = tokio::time::timeout(
                std::time::Duration::from_millis(20),
                terminal.read_buf(&mut arrived),
            );
            if let Ok(read) = waiting.await {
                read.unwrap();
                continue;
            }
            assert!(arrived.len() <= WINDOW_TO_INSIDE, "{}", arrived.len());
            let mut taken = 0;
            while let Some(Frame::Data(data)) = next_frame(&mut arrived).unwrap() {
                payload += data.len();
                taken += cost(data.len());
            }
            assert!(taken > 0, "stuck at {payload}");
            let ack = header(ACK, u16::try_from(taken).unwrap());
            terminal.write_all(&ack).await.unwrap();
        }
        drop(outside);
        carry.await.unwrap().unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn bytes_pass_both_ways_unchanged() {
        let (a, b) = tokio::io::duplex(64);
        let (mut outside, carry_outside) = reliable(a, End::Outside);
        let (mut inside, carry_inside) = reliable(b, End::Inside);
        tokio::spawn(carry_outside);
        tokio::spawn(carry_inside);
        let data: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let sent = data.clone();
        tokio::spawn(async move {
            outside.write_all(&sent).await.unwrap();
            let mut back = vec![0; sent.len()];
            outside.read_exact(&mut back).await.unwrap();
            assert_eq!(back, sent);
        });
        let mut arrived = vec![0; data.len()];
        inside.read_exact(&mut arrived).await.unwrap();
        assert_eq!(arrived, data);
        inside.write_all(&arrived).await.unwrap();
    }
}
