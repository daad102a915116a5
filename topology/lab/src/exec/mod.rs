//! Commands inside the lab, driven from outside.

use serde::{Deserialize, Serialize};

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
