// SPDX-License-Identifier: Apache-2.0

//! Runs commands inside the lab on behalf of outside processes.
//!
//! A connection carries one command: its request, its streams as frames, and its end. See
//! [`Frame`].

pub mod client;
mod frame;
pub mod server;

use serde::{Deserialize, Serialize};

pub use frame::{Frame, FrameCodec};

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// A program.
    Command(ExecRequest),
    /// A Mininet prompt.
    Mininet {
        /// Whether the other end is a terminal, so that the prompt echoes and edits lines.
        terminal: bool,
    },
}

/// A program to run inside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Host whose network namespace it runs in; `None` for the lab's own.
    #[serde(default)]
    pub host: Option<String>,
    /// Whether it gets a terminal, which combines standard output and error.
    #[serde(default)]
    pub pty: bool,
    /// Working directory; `/run/weft` by default.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Additional environment variables.
    #[serde(default)]
    pub env: Vec<(String, String)>,
}
