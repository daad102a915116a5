// SPDX-License-Identifier: Apache-2.0

//! Tests that need a tool which may be missing.
//!
//! Such a test is *ignored* where the tool is missing, and says why: it never passes without
//! having checked. A run that claims to have a tool names it in the environment variable
//! [`REQUIRE`], for example `WEFT_REQUIRE=bmv2,tshark`; there the test fails instead.
//!
//! Rust's own harness cannot ignore a test while it runs. So these tests have a `main` of their
//! own, which hands them to [`run`], and `harness = false` in `Cargo.toml`:
//!
//! ```no_run
//! use std::path::Path;
//! use std::process::{Command, ExitCode};
//!
//! use weft_testing::tools::{BMV2, run};
//!
//! fn bmv2_prints_its_version(program: &Path) {
//!     let output = Command::new(program).arg("--version").output();
//!     assert!(output.is_ok_and(|output| output.status.success()));
//! }
//!
//! fn main() -> ExitCode {
//!     run(weft_testing::tests![BMV2; bmv2_prints_its_version])
//! }
//! ```

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The environment variable that lists the tools which must be there, with commas between.
pub const REQUIRE: &str = "WEFT_REQUIRE";

/// A tool, or a right, that a test needs.
#[derive(Debug)]
pub struct Tool {
    /// What [`REQUIRE`] calls it.
    name: &'static str,
    /// Where its program is, or why it cannot be used.
    find: fn() -> Result<PathBuf, String>,
}

/// BMv2 with a P4Runtime server.
pub static BMV2: Tool = Tool {
    name: "bmv2",
    find: || on_path("simple_switch_grpc"),
};

/// Wireshark's `tshark`.
pub static TSHARK: Tool = Tool {
    name: "tshark",
    find: || on_path("tshark"),
};

/// Root, who may make network namespaces for others to enter, and `ip` to make them with.
pub static ROOT: Tool = Tool {
    name: "root",
    find: || {
        let ip = on_path("ip")?;
        let inside = Command::new("unshare")
            .args(["--net", "true"])
            .output()
            .map_err(|error| format!("unshare: {error}"))?;
        if inside.status.success() {
            Ok(ip)
        } else {
            Err("only root may make network namespaces".into())
        }
    },
};

/// Root, on a kernel with MPTCP.
pub static MPTCP: Tool = Tool {
    name: "mptcp",
    find: || {
        let ip = (ROOT.find)()?;
        match std::fs::read_to_string("/proc/sys/net/mptcp/enabled") {
            Ok(enabled) if enabled.trim() == "1" => Ok(ip),
            Ok(_) => Err("MPTCP is disabled (net.mptcp.enabled)".into()),
            Err(_) => Err("this kernel has no MPTCP".into()),
        }
    },
};

impl Tool {
    /// A test that is ignored, with the reason, where the tool is missing, and fails there if
    /// [`REQUIRE`] names it. It gets the path of the tool's program.
    pub fn test(&'static self, name: &str, test: fn(&Path)) -> Trial {
        Trial::ignorable_test(name, move || {
            let required = std::env::var(REQUIRE).unwrap_or_default();
            match (self.find)() {
                Ok(program) => {
                    test(&program);
                    Ok(Completion::Completed)
                }
                Err(reason) => self.without(&required, reason),
            }
        })
    }

    /// What becomes of a test without the tool, where a run claims to have `required`.
    fn without(&self, required: &str, reason: String) -> Result<Completion, Failed> {
        if required.split(',').any(|tool| tool.trim() == self.name) {
            return Err(format!("{REQUIRE} names {}, but: {reason}", self.name).into());
        }
        Ok(Completion::ignored_with(reason))
    }
}

/// Tests that need a tool, each with the name of its function: `tests![BMV2; one, another]`.
#[macro_export]
macro_rules! tests {
    ($tool:expr; $($test:ident),+ $(,)?) => {
        vec![$($tool.test(stringify!($test), $test)),+]
    };
}

/// Runs tests as Rust's own harness would: the `main` of a test that has none.
#[must_use]
pub fn run(tests: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// The first executable called `program` on the `PATH`.
fn on_path(program: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("no {program} on the PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(required: &str) -> Result<Completion, Failed> {
        BMV2.without(required, "no simple_switch_grpc on the PATH".into())
    }

    #[test]
    fn a_test_without_its_tool_is_ignored_with_the_reason() {
        for required in ["", "p4c", "p4c,tshark", "bmv2x"] {
            let Ok(Completion::Ignored {
                reason: Some(reason),
            }) = outcome(required)
            else {
                panic!("{required:?}: not ignored with a reason");
            };
            assert_eq!(reason, "no simple_switch_grpc on the PATH");
        }
    }

    #[test]
    fn a_test_without_its_tool_fails_where_the_run_claims_to_have_it() {
        for required in ["bmv2", "p4c,bmv2", "bmv2, tshark"] {
            let failed = outcome(required).err().unwrap();
            let said = failed.message().unwrap();
            assert!(
                said.starts_with("WEFT_REQUIRE names bmv2, but: no "),
                "{said}"
            );
        }
    }

    #[test]
    fn a_program_is_found_on_the_path_and_a_missing_one_named() {
        assert!(on_path("sh").unwrap().ends_with("sh"));
        let missing = on_path("no-such-program").unwrap_err();
        assert_eq!(missing, "no no-such-program on the PATH");
    }
}
