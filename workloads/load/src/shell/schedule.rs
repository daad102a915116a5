// SPDX-License-Identifier: Apache-2.0

//! Announces the start of traffic to the process that owns the links, see
//! [`weft_topology::Schedule`].

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Timeout of an answer, in real time; an answer takes no virtual time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Announces that traffic starts at `start_ns` of `CLOCK_MONOTONIC`.
pub(super) fn start(socket: &Path, start_ns: u64) -> Result<()> {
    let answer = exchange(socket, start_ns)
        .with_context(|| format!("{}: links cannot change", socket.display()))?;
    if let Some(error) = answer.get("error") {
        bail!("{}: links cannot change: {error}", socket.display());
    }
    Ok(())
}

fn exchange(socket: &Path, start_ns: u64) -> Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{}", json!({ "start_ns": start_ns }))?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
