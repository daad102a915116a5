// SPDX-License-Identifier: Apache-2.0

//! Multiplexes connections over the serial line.
//!
//! The outside opens connections and the inside accepts them. Each starts with one line that names
//! a service; the rest is up to that service.

use std::io;
use std::path::Path;
use std::task::Poll;

use futures::future::poll_fn;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use yamux::{Config, Connection, ConnectionError, Mode};

/// The controllers' gRPC servers, in order.
pub const CONTROLLERS: [&str; 3] = ["controller", "controller2", "controller3"];
/// Runs a command, see [`crate::exec`].
pub const EXEC: &str = "exec";
/// Maximum length of a service name.
const NAME_MAX: usize = 32;
/// Connections that wait to be opened.
const OPENING_MAX: usize = 64;

/// A connection to the other side.
pub type Stream = Compat<yamux::Stream>;

type Opening = oneshot::Sender<Result<yamux::Stream, ConnectionError>>;

/// Opens connections to services inside.
#[derive(Debug, Clone)]
pub struct Opener {
    requests: mpsc::Sender<Opening>,
}

impl Opener {
    /// Connects to a service.
    pub async fn open(&self, service: &str) -> io::Result<Stream> {
        let (answer, opened) = oneshot::channel();
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.requests.send(answer).await.map_err(|_| gone())?;
        let stream = opened
            .await
            .map_err(|_| gone())?
            .map_err(io::Error::other)?;
        let mut stream = stream.compat();
        stream.write_all(format!("{service}\n").as_bytes()).await?;
        Ok(stream)
    }
}

/// The outside end. The future runs as long as the line is open.
pub fn outside<L>(line: L) -> (Opener, impl Future<Output = io::Result<()>>)
where
    L: AsyncRead + AsyncWrite + Unpin,
{
    let (requests, mut opening) = mpsc::channel::<Opening>(OPENING_MAX);
    let mut connection = Connection::new(line.compat(), Config::default(), Mode::Client);
    let run = async move {
        let mut asked: Option<Opening> = None;
        poll_fn(move |context| {
            loop {
                if asked.is_none() {
                    if let Poll::Ready(Some(answer)) = opening.poll_recv(context) {
                        asked = Some(answer);
                    }
                }
                if asked.is_some() {
                    if let Poll::Ready(opened) = connection.poll_new_outbound(context) {
                        if let Some(answer) = asked.take() {
                            // The requester may be gone.
                            let _ = answer.send(opened);
                        }
                        continue;
                    }
                }
                return match connection.poll_next_inbound(context) {
                    Poll::Ready(None) => Poll::Ready(Ok(())),
                    Poll::Ready(Some(Err(error))) => Poll::Ready(Err(io::Error::other(error))),
                    // The inside opens no connections.
                    Poll::Ready(Some(Ok(_))) => continue,
                    Poll::Pending => Poll::Pending,
                };
            }
        })
        .await
    };
    (Opener { requests }, run)
}

/// The inside end: passes every connection to `serve`, until the line is closed.
pub async fn inside<L>(line: L, serve: impl Fn(Stream)) -> io::Result<()>
where
    L: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection::new(line.compat(), Config::default(), Mode::Server);
    while let Some(stream) = poll_fn(|context| connection.poll_next_inbound(context)).await {
        serve(stream.map_err(io::Error::other)?.compat());
    }
    Ok(())
}

/// Reads the line with the service name.
pub async fn read_service(stream: &mut Stream) -> io::Result<String> {
    let mut name = Vec::new();
    loop {
        let byte = stream.read_u8().await?;
        if byte == b'\n' {
            break;
        }
        if name.len() == NAME_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no service"));
        }
        name.push(byte);
    }
    String::from_utf8(name).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Creates a socket in the lab's folder that connects to a service inside.
pub fn listen(path: &Path, service: &'static str, opener: Opener) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    tokio::task::spawn_local(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let opener = opener.clone();
            tokio::task::spawn_local(async move {
                // Either end may close at any time.
                if let Ok(mut stream) = opener.open(service).await {
                    let _ = tokio::io::copy_bidirectional(&mut socket, &mut stream).await;
                }
            });
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo(mut stream: Stream) {
        let service = read_service(&mut stream).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        let answer = format!("{service}: {said}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn connections_share_a_line_and_do_not_mix() {
        let (here, there) = tokio::io::duplex(4096);
        let local = tokio::task::LocalSet::new();
        local.spawn_local(inside(there, |stream| {
            tokio::task::spawn_local(echo(stream));
        }));
        let (opener, run) = outside(here);
        local.spawn_local(run);
        local
            .run_until(async move {
                let ask = |service: &'static str, text: String| {
                    let opener = opener.clone();
                    async move {
                        let mut stream = opener.open(service).await.unwrap();
                        stream.write_all(text.as_bytes()).await.unwrap();
                        stream.shutdown().await.unwrap();
                        let mut answer = String::new();
                        stream.read_to_string(&mut answer).await.unwrap();
                        assert_eq!(answer, format!("{service}: {text}"));
                    }
                };
                tokio::join!(
                    ask(CONTROLLERS[0], "x".repeat(1_000_000)),
                    ask(EXEC, "short".into()),
                    ask(EXEC, String::new()),
                );
            })
            .await;
    }
}
