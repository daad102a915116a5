// SPDX-License-Identifier: Apache-2.0

//! The flags that describe a workload, for every program that has them.

mod background;
mod document;
mod traffic;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::engine::Connections;
use crate::ideal_fabric::Protocol;
use weft_text::units::{parse_bytes, parse_duration_ns};

pub use background::BackgroundArgs;
pub use document::RunDocument;
pub use traffic::{Extent, Mix, Pairs, Traffic, Volume};

/// Load if `--load` is not given.
pub const DEFAULT_LOAD: f64 = 0.3;

/// Which hosts talk to which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficKind {
    /// Poisson arrivals between random hosts of different racks.
    Random,
    /// Many senders, one receiver, all at once or one after the other.
    Incast,
    /// Long flows from the first rack to the second.
    Bulk,
    /// Objects of a web page, fetched over a few parallel connections.
    Page,
    /// Poisson arrivals; every host sends to one host of another rack, and
    /// receives from one.
    Permutation,
    /// Poisson arrivals from random hosts at one receiver.
    ManyToOne,
    /// A flow between every two hosts of different racks.
    AllToAll,
    /// Long and short flows to one receiver, in random order.
    Mixed,
    /// A host asks several others at once, and needs all their answers.
    Queries,
    /// The flows of --flow-list.
    Replay,
}

/// A workload, as flags, and as [`RunDocument`] has it.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArgs {
    /// Who sends to whom
    #[arg(
        long = "traffic",
        value_enum,
        value_name = "KIND",
        default_value = "random"
    )]
    pub kind: TrafficKind,

    /// Flow sizes of random, permutation and many-to-one traffic: websearch, datamining,
    /// cachefollower, webserver, hadoop, or a CSV file with the columns `bytes,probability`
    /// [default: websearch]
    #[arg(long, value_name = "NAME|FILE")]
    pub workload: Option<String>,

    /// Offered load of random, permutation and many-to-one traffic: a share of the rate of the
    /// hosts' links (many-to-one: of the receiver's link), above 0 and at most 1 [default: 0.3]
    #[arg(long, value_name = "SHARE")]
    pub load: Option<f64>,

    /// Number of flows, or of queries [default: random, permutation and many-to-one 200, mixed
    /// 50, bulk 1, queries 100]
    #[arg(long, value_name = "COUNT")]
    pub flows: Option<u32>,

    /// Stop when the mean FCT is known to this many percent: no more flows arrive once half of
    /// its 95% confidence interval is smaller. For random, permutation and many-to-one traffic;
    /// --flows is then the maximum number [default: 20000]
    #[arg(long, value_name = "PERCENT")]
    pub precision: Option<f64>,

    /// Multiply all sizes by this factor. The offered load stays the same, so the rate of
    /// arrivals changes
    #[arg(long, value_name = "FACTOR")]
    pub scale: Option<f64>,

    /// Number of flows of an incast. If there are fewer hosts in other racks, some hosts send
    /// several flows [default: 10]
    #[arg(long, value_name = "COUNT")]
    pub senders: Option<u32>,

    /// Mean time between the starts of flows, which then form a Poisson process: incast,
    /// all-to-all and mixed [default: all start at once]; or between queries [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub interarrival: Option<u64>,

    /// Start each flow at a random moment within this time: incast, all-to-all and mixed
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub jitter: Option<u64>,

    /// Size of each flow, of each long flow (mixed), of each answer (queries), or of all
    /// objects together (page) [default: incast and all-to-all 225000, bulk 20MB, mixed 2GB,
    /// queries 20KB, page 2MB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub bytes: Option<u64>,

    /// Size of each short flow of mixed traffic [default: 2MB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub short_bytes: Option<u64>,

    /// Share of long flows in mixed traffic, from 0 to 1 [default: 0.2]
    #[arg(long, value_name = "SHARE")]
    pub long_share: Option<f64>,

    /// bulk: stop the flows after this time instead of after a number of bytes. random,
    /// permutation and many-to-one: let flows arrive for this time instead of a number of them.
    /// In a lab, this is virtual time
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub duration: Option<u64>,

    /// Leave flows that arrive before this time out of all results, so that queues and windows
    /// are those of a network that has been busy for a while: random, permutation and
    /// many-to-one. They are sent, and are in flows.csv and in what switches count
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub warmup: Option<u64>,

    /// Number of objects of a page, all of one size [default: 100]
    #[arg(long, value_name = "COUNT")]
    pub objects: Option<u32>,

    /// Number of connections that fetch a page. Each requests its next object (400 bytes) when
    /// it has received the last one [default: 6]
    #[arg(long, value_name = "COUNT")]
    pub parallel: Option<u32>,

    /// Number of hosts that a query asks, with 400 bytes each [default: 8]
    #[arg(long, value_name = "COUNT")]
    pub fan_out: Option<u32>,

    /// Time within which a query needs its last answer. The results count the queries that miss
    /// it [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub deadline: Option<u64>,

    /// Flows to replay: a CSV file with the columns `source,destination,bytes,start_ns`, where
    /// hosts have their names, such as h1_1
    #[arg(long, value_name = "FILE")]
    pub flow_list: Option<String>,

    /// Seed of all random choices: sizes, arrivals, pairs of hosts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// persistent: a pool of connections for each pair of hosts, opened before the run, and one
    /// more whenever all are busy; new: a connection for each flow, whose handshake is part of
    /// the FCT
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "persistent",
        hide_possible_values = true
    )]
    pub connections: Connections,

    /// SO_SNDBUF of senders. 65536 is a buffer of 64 KiB, for which Linux reserves twice as
    /// much memory [default: the kernel's autotuning]
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer)]
    pub send_buffer: Option<u32>,

    /// SO_RCVBUF of receivers, counted in the same way [default: the kernel's autotuning]
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer)]
    pub receive_buffer: Option<u32>,

    /// Transport protocol
    #[arg(long, value_enum, value_name = "NAME", default_value = "mptcp")]
    pub protocol: Protocol,

    /// TCP congestion control of all hosts, and so of every subflow. lia, olia, balia and
    /// wvegas couple the subflows of a connection; cubic, reno, dctcp and others of the kernel
    /// do not [default: the kernel's]
    #[arg(long, value_name = "NAME", value_parser = parse_congestion)]
    pub congestion: Option<String>,

    /// With --priorities, let the applications of MPTCP flows tell the kernel how much they have
    /// left to write (IP_TOS), which it otherwise estimates. Plain TCP's always do
    #[arg(long)]
    pub tell_sizes: bool,

    /// Parameters of the schedulers' kernel module, such as weft_rescue_ms=0,weft_listen=0, or
    /// weft_thresholds_kb=30/75/140 for one with several values; `modinfo` explains them.
    /// Applications that tell sizes heed weft_spread_percent too
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = parse_scheduler_option)]
    pub scheduler_options: Vec<SchedulerOption>,

    /// Record the congestion window, packets in flight and RTT of every subflow at this
    /// interval, in samples.csv [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub sample: Option<u64>,

    /// Give up when no byte has arrived anywhere for this long. In a lab, this is virtual time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_stall)]
    pub stall_timeout: u64,

    /// What else there is.
    #[command(flatten)]
    pub background: BackgroundArgs,
}

/// A parameter of the schedulers' kernel module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SchedulerOption {
    /// Its name, such as `weft_rescue_ms`.
    pub name: String,
    /// What to set it to; several values with slashes between them.
    pub value: String,
}

impl std::fmt::Display for SchedulerOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl From<SchedulerOption> for String {
    fn from(option: SchedulerOption) -> Self {
        option.to_string()
    }
}

impl TryFrom<String> for SchedulerOption {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_scheduler_option(&text)
    }
}

/// The kernel's part in a workload, as a flag.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Workload")]
pub struct SchedulerArgs {
    /// MPTCP scheduler of all hosts
    #[arg(
        long,
        value_name = "NAME",
        default_value = "rb",
        value_parser = parse_scheduler,
        help = format!("MPTCP scheduler of all hosts: {SCHEDULERS}. default is the kernel's own")
    )]
    pub scheduler: String,
}

/// All schedulers that Weft has, and the kernel's own: `blest, daps, default, ...`.
pub const SCHEDULERS: &str = include_str!(concat!(env!("OUT_DIR"), "/schedulers"));

/// Whether a distribution comes with Weft, and is no file.
fn is_shipped(workload: &str) -> bool {
    Distribution::names().any(|name| name == workload)
}

impl Default for WorkloadArgs {
    /// The workload that no flag describes.
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct NoFlags {
            #[command(flatten)]
            workload: WorkloadArgs,
        }
        <NoFlags as clap::Parser>::parse_from(["weft"]).workload
    }
}

impl WorkloadArgs {
    /// The same workload for a program that runs in another folder: makes the
    /// paths of a distribution and of a list of flows absolute.
    #[must_use]
    pub fn absolute(mut self, folder: &Path) -> Self {
        let list = self.flow_list.take();
        self.flow_list = list.map(|list| folder.join(list).to_string_lossy().into_owned());
        if let Some(workload) = self.workload.take() {
            self.workload = Some(if is_shipped(&workload) {
                workload
            } else {
                folder.join(workload).to_string_lossy().into_owned()
            });
        }
        self
    }

    /// The files that it is read from: a distribution, a list of flows.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let distribution = self.workload.as_ref().filter(|name| !is_shipped(name));
        let files = distribution.into_iter().chain(&self.flow_list);
        files.map(PathBuf::from).collect()
    }

    /// The kind of traffic, as the flag names it.
    #[must_use]
    pub fn kind_name(&self) -> String {
        value_name(&self.kind).unwrap_or_default()
    }

    /// A name for the workload's results, from what it sends: `websearch`.
    #[must_use]
    pub fn short_name(&self) -> &str {
        match self.kind {
            TrafficKind::Incast => "incast",
            TrafficKind::Bulk => "bulk",
            TrafficKind::Page => "page",
            TrafficKind::Permutation => "permutation",
            TrafficKind::ManyToOne => "many-to-one",
            TrafficKind::AllToAll => "all-to-all",
            TrafficKind::Mixed => "mixed",
            TrafficKind::Queries => "queries",
            TrafficKind::Replay => "replay",
            TrafficKind::Random => self.workload.as_deref().map_or("websearch", |workload| {
                Path::new(workload)
                    .file_stem()
                    .and_then(|stem| stem.to_str())
                    .unwrap_or("custom")
            }),
        }
    }
}

fn value_name(value: &impl ValueEnum) -> Option<String> {
    value
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
}

/// The kernel's limit of the name of a scheduler or a congestion control,
/// without its final zero.
const NAME_MAX: usize = 15;

/// Whether `text` could be such a name.
fn is_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Checks that `text` could be the name of an MPTCP scheduler.
///
/// # Errors
/// One line that says what names look like.
pub fn parse_scheduler(text: &str) -> Result<String, String> {
    if !is_name(text) {
        return Err(format!(
            "{text:?} is no scheduler's name; names are like rb, minrtt_pr or default"
        ));
    }
    Ok(text.to_owned())
}

fn parse_scheduler_option(text: &str) -> Result<SchedulerOption, String> {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match text.split_once('=') {
        Some((name, value)) if is_word(name) && value.split('/').all(is_word) => {
            Ok(SchedulerOption {
                name: name.to_owned(),
                value: value.to_owned(),
            })
        }
        _ => Err(format!(
            "{text:?} is no option of a scheduler; they are like weft_rescue_ms=0"
        )),
    }
}

fn parse_congestion(text: &str) -> Result<String, String> {
    if !is_name(text) {
        return Err(format!(
            "{text:?} is no congestion control's name; there are lia, olia, balia, wvegas and \
             the kernel's own, such as cubic"
        ));
    }
    Ok(text.to_owned())
}

fn parse_buffer(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (4_096..=1 << 30).contains(bytes))
        .ok_or_else(|| format!("{text:?}: socket buffers have 4096 bytes to 1 GiB, such as 65536"))
}

fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = parse_duration_ns(text)?;
    if ns == 0 {
        return Err(format!("{text:?}: give more than nothing, such as 100us"));
    }
    Ok(ns)
}

fn parse_stall(text: &str) -> Result<u64, String> {
    let ns = parse_duration_ns(text)?;
    if ns < 1_000_000_000 {
        return Err(format!("{text:?}: give at least 1s, such as 30s"));
    }
    Ok(ns)
}

#[cfg(test)]
pub(super) mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        workload: WorkloadArgs,
    }

    pub(super) fn parse(line: &str) -> WorkloadArgs {
        Cli::try_parse_from(std::iter::once("test").chain(line.split_whitespace()))
            .unwrap()
            .workload
    }

    #[test]
    fn a_distributions_path_becomes_absolute_and_a_name_stays() {
        let folder = Path::new("/somewhere");
        let list = parse("--flow-list a.csv").absolute(folder).flow_list;
        assert_eq!(list.unwrap(), "/somewhere/a.csv");
        let moved = |line| parse(line).absolute(folder).workload;
        assert_eq!(moved("--workload my.csv").unwrap(), "/somewhere/my.csv");
        assert_eq!(moved("--workload hadoop").unwrap(), "hadoop");
        assert_eq!(moved(""), None);
    }

    #[test]
    fn its_files_are_the_distribution_that_has_no_name_and_the_list_of_flows() {
        let files = |line| parse(line).files();
        assert_eq!(files("--workload my.csv"), [Path::new("my.csv")]);
        assert_eq!(files("--flow-list a.csv"), [Path::new("a.csv")]);
        assert!(files("--workload hadoop").is_empty());
    }
}
