// SPDX-License-Identifier: Apache-2.0

//! The socket on which the traffic generator announces the start of traffic, see
//! [`weft_topology::Schedule`].

use std::io;
use std::path::Path;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::world::Shared;

/// The message of the traffic generator.
#[derive(Debug, Deserialize)]
struct Start {
    start_ns: u64,
}

/// Opens `socket`, and starts the world's schedule at each message, for as long as the runtime
/// lives.
///
/// # Errors When the socket cannot be created.
pub fn serve_schedule(socket: &Path, shared: &Shared) -> io::Result<()> {
    // A socket that an earlier process left would block the name.
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    let shared = shared.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Err(error) = answer(stream, &shared).await {
                tracing::warn!(%error, "invalid message about the start of traffic");
            }
        }
    });
    Ok(())
}

/// Reads one line and answers it.
async fn answer(mut stream: UnixStream, shared: &Shared) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).await?;
    match serde_json::from_str::<Start>(&line) {
        Ok(Start { start_ns }) => {
            shared.lock().network.start_schedule(start_ns);
            stream.write_all(b"{}\n").await
        }
        Err(error) => {
            let answer = serde_json::json!({"error": error.to_string()});
            stream.write_all(format!("{answer}\n").as_bytes()).await?;
            Err(error.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::network::TimestampUnit;
    use crate::server::World;

    fn shared() -> Shared {
        let topology = weft_testing::topology::empty();
        let world = World::new(&topology, TimestampUnit::Nanoseconds, 0, 1).unwrap();
        Shared::new(world, || {})
    }

    async fn say(socket: &Path, line: &str) -> Value {
        let mut stream = UnixStream::connect(socket).await.unwrap();
        stream.write_all(line.as_bytes()).await.unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    #[tokio::test]
    async fn a_start_is_answered_and_nonsense_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        serve_schedule(&socket, &shared()).unwrap();
        assert_eq!(say(&socket, "{\"start_ns\": 7}\n").await, json!({}));
        let refusal = say(&socket, "now\n").await;
        assert!(refusal["error"].is_string());
        assert_eq!(say(&socket, "{\"start_ns\": 8}\n").await, json!({}));
    }

    #[tokio::test]
    async fn the_socket_of_a_process_that_died_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        serve_schedule(&socket, &shared()).unwrap();
        assert_eq!(say(&socket, "{\"start_ns\": 7}\n").await, json!({}));
    }
}
