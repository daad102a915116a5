// SPDX-License-Identifier: Apache-2.0

//! What the kernels of hosts say of connections, patterns and thresholds: for people, and as JSON.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use weft_agent::adaptive::Sample;
use weft_agent::netlink;
use weft_agent::subflows::Subflows;
use weft_agent::weft::{Flow, Pattern, Thresholds, Weft};
use weft_text::units::{format_bytes, format_duration};
use weft_topology::Host;

use crate::Hosts;

#[derive(Debug, Args)]
pub struct Query {
    #[command(flatten)]
    hosts: Hosts,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct OfHost<'a, T> {
    host: &'a str,
    #[serde(flatten)]
    what: &'a T,
}

impl Query {
    pub fn print_flows(&self) -> Result<()> {
        let none = "no connection is served by one of Weft's schedulers now";
        self.print(|netns| Weft::open(netns)?.flows(), flow_text, none)
    }

    pub fn print_subflows(&self) -> Result<()> {
        let paths = |netns: &Path| Ok(paths(Subflows::open(netns)?.by_connection()?));
        self.print(paths, path_text, "no host has opened a connection now")
    }

    pub fn print_patterns(&self) -> Result<()> {
        let none = "no kernel has a pattern";
        self.print(|netns| Weft::open(netns)?.patterns(), pattern_text, none)
    }

    pub fn print_thresholds(&self) -> Result<()> {
        let none = "no kernel has thresholds but those that are built in";
        self.print(
            |netns| Weft::open(netns)?.thresholds(),
            thresholds_text,
            none,
        )
    }

    /// Prints what `dump` returns for the namespace of every host: as one JSON array, or as
    /// text, one entry after another, or `none`.
    fn print<T: Serialize>(
        &self,
        dump: impl Fn(&Path) -> Result<Vec<T>, netlink::Error>,
        text: impl Fn(&Host, &T) -> String,
        none: &str,
    ) -> Result<()> {
        let hosts = self.hosts.read()?;
        let mut found = Vec::new();
        for host in &hosts {
            for what in dump(&host.netns).with_context(|| host.name.clone())? {
                found.push((host, what));
            }
        }
        if self.json {
            let objects = found.iter().map(|(host, what)| OfHost {
                host: &host.name,
                what,
            });
            println!(
                "{}",
                serde_json::to_string_pretty(&objects.collect::<Vec<_>>())?
            );
        } else if found.is_empty() {
            println!("{none}");
        } else {
            for (host, what) in &found {
                println!("{}", text(host, what));
            }
        }
        Ok(())
    }
}

/// A time that a kernel or the network has measured, if it has.
fn measured(ns: u64) -> String {
    match ns {
        0 => "unknown".to_owned(),
        ns => format_duration(ns as f64),
    }
}

fn flow_text(host: &Host, flow: &Flow) -> String {
    let source = serde_json::to_value(flow.source).unwrap_or_default();
    let version = flow
        .version
        .map(|version| format!(" version {version}"))
        .unwrap_or_default();
    let mut text = format!(
        "{} token {:08x} {} pattern {}{version}",
        host.name,
        flow.token,
        flow.scheduler,
        source.as_str().unwrap_or_default(),
    );
    for subflow in &flow.subflows {
        text += &format!(
            "\n  {} -> {}  gap {}  rtt {}  {} packets  {}",
            subflow.local,
            subflow.remote,
            subflow.gap,
            measured(subflow.rtt_ns),
            subflow.packets,
            format_bytes(subflow.bytes),
        );
    }
    text
}

/// The subflows of a connection over one path.
#[derive(Serialize)]
struct PathSubflows {
    token: u32,
    local: Ipv4Addr,
    remote: Ipv4Addr,
    subflows: Vec<Sample>,
}

fn paths(connections: BTreeMap<u32, Vec<Sample>>) -> Vec<PathSubflows> {
    let mut paths: BTreeMap<(u32, Ipv4Addr, Ipv4Addr), Vec<Sample>> = BTreeMap::new();
    for (token, subflows) in connections {
        for subflow in subflows {
            let path = (token, *subflow.local.ip(), *subflow.remote.ip());
            paths.entry(path).or_default().push(subflow);
        }
    }
    let path = |((token, local, remote), subflows)| PathSubflows {
        token,
        local,
        remote,
        subflows,
    };
    paths.into_iter().map(path).collect()
}

fn path_text(host: &Host, path: &PathSubflows) -> String {
    let count = path.subflows.len();
    let mut text = format!(
        "{} token {:08x} {} -> {}  {count} subflow{}",
        host.name,
        path.token,
        path.local,
        path.remote,
        if count == 1 { "" } else { "s" },
    );
    for subflow in &path.subflows {
        text += &format!(
            "\n  port {}  rtt {}, lowest {}  {} packets sent, {} of them retransmitted  {} acknowledged{}",
            subflow.local.port(),
            measured(subflow.rtt_ns),
            measured(subflow.rtt_min_ns),
            subflow.sent_packets,
            subflow.retransmitted_packets,
            format_bytes(subflow.acked_bytes),
            if subflow.established {
                ""
            } else {
                "  (opening)"
            },
        );
    }
    text
}

/// Whether a kernel still uses what it was told, and since when it has it.
fn age(age_ns: u64, time_to_live_ns: u64) -> String {
    let state = if age_ns < time_to_live_ns {
        "live"
    } else {
        "expired"
    };
    let [age, time_to_live] = [age_ns, time_to_live_ns].map(|ns| format_duration(ns as f64));
    format!("{state} age {age} of {time_to_live}")
}

fn thresholds_text(host: &Host, thresholds: &Thresholds) -> String {
    let bounds = thresholds.most_bytes.iter().copied().map(format_bytes);
    format!(
        "{} version {} {}  up to {}",
        host.name,
        thresholds.version,
        age(thresholds.age_ns, thresholds.time_to_live_ns),
        bounds.collect::<Vec<_>>().join(", "),
    )
}

fn pattern_text(host: &Host, pattern: &Pattern) -> String {
    let sequence: String = pattern
        .sequence
        .iter()
        .map(|index| char::from(b'A' + (index % 26)))
        .collect();
    let mut text = format!(
        "{} to {} version {} {}  {sequence}",
        host.name,
        pattern.prefix,
        pattern.version,
        age(pattern.age_ns, pattern.time_to_live_ns),
    );
    for (letter, path) in ('A'..).zip(&pattern.paths) {
        text += &format!(
            "\n  {letter} from {}  gap {}  rtt {}",
            path.local,
            path.gap,
            measured(path.rtt_ns),
        );
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn subflow(local: &str) -> Sample {
        let remote = "10.2.1.1:5000".parse().unwrap();
        Sample::first(local.parse().unwrap(), remote, 1)
    }

    #[test]
    fn subflows_of_a_path_stand_together() {
        let of_one = vec![
            subflow("10.1.1.1:4000"),
            subflow("10.1.1.2:4001"),
            subflow("10.1.1.1:4002"),
        ];
        let paths = paths(BTreeMap::from([(7, of_one)]));
        let shape: Vec<_> = paths
            .iter()
            .map(|path| (path.token, path.local.to_string(), path.subflows.len()))
            .collect();
        assert_eq!(
            shape,
            [(7, "10.1.1.1".into(), 2), (7, "10.1.1.2".into(), 1)]
        );
    }

    #[test]
    fn times_are_written_as_people_read_them() {
        assert_eq!(measured(0), "unknown");
        assert_eq!(measured(23_456_789), "23.5 ms");
        assert_eq!(age(1_500_000, 200_000_000), "live age 1.50 ms of 200 ms");
        assert_eq!(
            age(200_000_000, 200_000_000),
            "expired age 200 ms of 200 ms"
        );
    }
}
