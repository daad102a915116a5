//! Commands inside the lab, driven from outside.
//!
//! A connection carries one command: a request, then its streams in frames,
//! then its end. See [`Frame`].

pub mod client;
mod frame;
pub mod server;

use serde::{Deserialize, Serialize};

pub use frame::{Frame, FrameCodec};

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// A command.
    Command(ExecRequest),
    /// The Mininet prompt.
    Mininet {
        /// Whether the other end is a terminal, which then wants echo and line
        /// editing.
        terminal: bool,
    },
}

/// A command to run inside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Host whose network namespace it runs in; `None` for the lab's own.
    #[serde(default)]
    pub host: Option<String>,
    /// Whether it gets a terminal. Standard output and error are one then.
    #[serde(default)]
    pub pty: bool,
    /// Working directory; `/run/weft` if not given.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Additions to its environment.
    #[serde(default)]
    pub env: Vec<(String, String)>,
}
