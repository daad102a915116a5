// SPDX-License-Identifier: Apache-2.0

//! What `weft-load` is told to do: a JSON document from the program that parsed the flags.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::WorkloadArgs;
use crate::ideal_fabric::Protocol;

/// A run: a workload, and where things are for the process that sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDocument {
    /// What to send; what a document leaves out is the flag's default. Times are in nanoseconds, sizes in bytes, rates in bits per second.
    pub workload: WorkloadArgs,
    /// MPTCP scheduler of all hosts.
    pub scheduler: String,
    /// Folder for the results; must not exist.
    pub out: PathBuf,
    /// Revision of Weft's source, for `run.json`.
    #[serde(default)]
    pub revision: Option<String>,
    /// The fabric.
    #[serde(default = "topology")]
    pub topology: PathBuf,
    /// Where switches and controller write telemetry, and `progress.json` goes.
    #[serde(default = "stats_dir")]
    pub stats_dir: PathBuf,
    /// Port that receivers listen on.
    #[serde(default = "port")]
    pub port: u16,
}

fn topology() -> PathBuf {
    "/run/weft/topology.json".into()
}

fn stats_dir() -> PathBuf {
    "/run/weft".into()
}

fn port() -> u16 {
    5201
}

impl RunDocument {
    /// A run inside a lab.
    #[must_use]
    pub fn in_lab(workload: WorkloadArgs, scheduler: &str, out: PathBuf) -> Self {
        Self {
            workload,
            scheduler: scheduler.to_owned(),
            out,
            revision: None,
            topology: topology(),
            stats_dir: stats_dir(),
            port: port(),
        }
    }

    /// The scheduler; `None` for plain TCP, which has none to set.
    #[must_use]
    pub fn mptcp_scheduler(&self) -> Option<&str> {
        match self.workload.protocol {
            Protocol::Mptcp => Some(&self.scheduler),
            Protocol::Tcp => None,
        }
    }

    /// The document as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Numbers, texts and lists of them: there is nothing that JSON could not hold, except
        // paths that are no UTF-8, which flags cannot give.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the document.
    ///
    /// # Errors
    /// One line that says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|error| format!("the run is no document of one: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;

    #[test]
    fn flags_survive_the_way_through_a_document() {
        for line in [
            "",
            "--workload datamining --load 0.45 --flows 7 --seed 9 --protocol tcp --congestion lia",
            "--load 0.30000000000000004 --scale 1e-7 --seed 18446744073709551615",
            "--traffic incast --senders 32 --bytes 225KB --send-buffer 64KiB --connections new",
            "--traffic incast --interarrival 1.5us --receive-buffer 1MiB",
            "--traffic bulk --flows 60 --bytes 20MB",
            "--traffic bulk --duration 20s",
            "--traffic page --objects 107 --bytes 3.5MB --parallel 4",
            "--scheduler-options weft_rescue_ms=0,weft_listen=N,weft_thresholds_kb=30/75/140",
            "--traffic permutation --precision 5 --scale 0.01 --duration 1s --warmup 100ms",
            "--traffic many-to-one --load 0.9 --tell-sizes",
            "--traffic all-to-all --jitter 10us",
            "--traffic mixed --short-bytes 2MB --long-share 0.25",
            "--traffic queries --fan-out 4 --deadline 10ms",
            "--traffic replay --flow-list flows.csv",
            "--background-tcp 3 --background-udp 2 --udp-rate 1gbit --udp-on 1ms --udp-off 3ms",
        ] {
            let run = RunDocument::in_lab(parse(line), "rb", "/run/weft/results".into());
            let again = RunDocument::from_json(&run.to_json());
            assert_eq!(again, Ok(run), "{line}");
        }
    }

    #[test]
    fn a_document_that_is_none_is_refused_in_one_line_that_names_the_field() {
        let run = RunDocument::in_lab(parse(""), "rb", "out".into()).to_json();
        for (wrong, said) in [
            (run.replace(r#""seed""#, r#""sead""#), "`sead`"),
            (run.replace(r#""seed":1"#, r#""seed":-1"#), "-1"),
            (run.replace(r#""random""#, r#""none""#), "`none`"),
            (run.replace(r#","scheduler":"rb""#, ""), "`scheduler`"),
            (run.replace("[]", r#"["a b=1"]"#), "a b=1"),
            (String::from("--flows 3"), "line 1"),
        ] {
            let error = RunDocument::from_json(&wrong).unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
