// SPDX-License-Identifier: Apache-2.0

//! `weft patterns` and `weft paths`: what the controller knows, once.

use clap::Args;
use serde::Serialize;
use weft_proto::v1::{
    LeafPairPaths, LeafPairPattern, ListPathsRequest, ListPatternsRequest, PathState,
};
use weft_text::table::Table;
use weft_text::units::format_duration;

use crate::topo::LabName;
use crate::{Outcome, classes, client, display};

/// A question to the controller.
#[derive(Debug, Args)]
pub struct QueryArgs {
    #[command(flatten)]
    pub lab: LabName,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A question about patterns.
#[derive(Debug, Args)]
pub struct PatternsArgs {
    /// Show the last patterns of every pair, and what led to each
    #[arg(long)]
    pub history: bool,

    #[command(flatten)]
    pub query: QueryArgs,
}

/// Shows the pattern of every pair of leaves.
pub async fn patterns(args: &QueryArgs) -> Outcome {
    let mut client = client::connect(&args.lab.name).await?;
    let answer = client
        .list_patterns(ListPatternsRequest {})
        .await
        .map_err(client::refusal)?
        .into_inner();
    if args.json {
        let patterns: Vec<_> = answer.patterns.iter().map(PatternDocument::of).collect();
        return display::out_json(&patterns);
    }
    if answer.patterns.is_empty() {
        return display::out("no pattern yet: no host has sent data to another leaf\n");
    }
    let text: Vec<String> = answer.patterns.iter().map(pattern_text).collect();
    let of_classes = classes::of(&mut client).await?;
    display::out(text.join("\n") + &classes::line(&of_classes))
}

/// Shows telemetry of every path of every pair of leaves.
pub async fn paths(args: &QueryArgs) -> Outcome {
    let mut client = client::connect(&args.lab.name).await?;
    let answer = client
        .list_paths(ListPathsRequest {})
        .await
        .map_err(client::refusal)?
        .into_inner();
    if args.json {
        let pairs: Vec<_> = answer.pairs.iter().map(PairDocument::of).collect();
        return display::out_json(&pairs);
    }
    display::out(paths_text(&answer.pairs))
}

fn pattern_text(pattern: &LeafPairPattern) -> String {
    let mut table = Table::new(3, ["", "path", "via", "RTT", "configured", "queue", "gap"]);
    for state in &pattern.paths {
        let mut row = vec![String::new()];
        row.extend(path_cells(state));
        row.push(match state.gap {
            0 if state.dead => "dead".to_owned(),
            0 if state.loss_ppm > 0 => "gray".to_owned(),
            0 => "-".to_owned(),
            gap => gap.to_string(),
        });
        table.push(row);
    }
    let sequence = if pattern.sequence.is_empty() {
        "none yet: hosts use their own RTT".to_owned()
    } else {
        display::sequence(&pattern.sequence)
    };
    let hosts = match &pattern.acknowledged_by[..] {
        [] => "no host".to_owned(),
        hosts => hosts.join(" "),
    };
    format!(
        "{} -> {}   version {}, {} old, renewed for {} each time\n{table}  sequence {sequence}\n  in use by {hosts}\n",
        pattern.source,
        pattern.destination,
        pattern.version,
        format_duration(pattern.age_ns as f64),
        format_duration(pattern.time_to_live_ns as f64),
    )
}

fn paths_text(pairs: &[LeafPairPaths]) -> String {
    let mut table = Table::new(
        3,
        [
            "leaves",
            "path",
            "via",
            "RTT",
            "configured",
            "queue",
            "lowest RTT",
            "queueing",
            "samples",
            "last",
        ],
    );
    for pair in pairs {
        for state in &pair.paths {
            let mut row = vec![format!("{} -> {}", pair.source, pair.destination)];
            row.extend(path_cells(state));
            row.push(duration_or_dash(state.rtt_min_ns));
            row.push(queueing(state.queue_delay_ns));
            row.push(state.samples.to_string());
            row.push(if state.samples == 0 {
                "-".to_owned()
            } else {
                format!("{} ago", format_duration(state.sample_age_ns as f64))
            });
            table.push(row);
        }
    }
    table.to_string()
}

/// Path, via, RTT, configured RTT, queue.
fn path_cells(state: &PathState) -> [String; 5] {
    [
        display::path_letter(state.path).to_string(),
        state.via.clone(),
        duration_or_dash(state.rtt_ns),
        duration_or_dash(state.rtt_configured_ns),
        state.queue_packets.to_string(),
    ]
}

/// A time that was measured, or `-` if none was.
pub fn duration_or_dash(ns: u64) -> String {
    duration_or("-", ns)
}

/// How long packets wait in queues.
pub fn queueing(ns: u64) -> String {
    duration_or("none", ns)
}

/// A time, or `zero` in its place.
pub fn duration_or(zero: &str, ns: u64) -> String {
    match ns {
        0 => zero.to_owned(),
        ns => format_duration(ns as f64),
    }
}

#[derive(Debug, Serialize)]
struct PatternDocument<'a> {
    source_leaf: u32,
    destination_leaf: u32,
    version: u64,
    age_ns: u64,
    time_to_live_ns: u64,
    sequence: String,
    paths: Vec<PathDocument<'a>>,
    acknowledged_by: &'a [String],
}

impl<'a> PatternDocument<'a> {
    fn of(pattern: &'a LeafPairPattern) -> Self {
        Self {
            source_leaf: pattern.source_leaf,
            destination_leaf: pattern.destination_leaf,
            version: pattern.version,
            age_ns: pattern.age_ns,
            time_to_live_ns: pattern.time_to_live_ns,
            sequence: display::sequence(&pattern.sequence),
            paths: pattern.paths.iter().map(PathDocument::of).collect(),
            acknowledged_by: &pattern.acknowledged_by,
        }
    }
}

#[derive(Debug, Serialize)]
struct PairDocument<'a> {
    source_leaf: u32,
    destination_leaf: u32,
    paths: Vec<PathDocument<'a>>,
}

impl<'a> PairDocument<'a> {
    fn of(pair: &'a LeafPairPaths) -> Self {
        Self {
            source_leaf: pair.source_leaf,
            destination_leaf: pair.destination_leaf,
            paths: pair.paths.iter().map(PathDocument::of).collect(),
        }
    }
}

/// A path; what was not measured yet is null.
#[derive(Debug, Serialize)]
struct PathDocument<'a> {
    path: char,
    via: &'a str,
    rtt_ns: Option<u64>,
    rtt_min_ns: Option<u64>,
    rtt_configured_ns: u64,
    queue_packets: u32,
    queue_delay_ns: u64,
    gap: Option<u32>,
    dead: bool,
    slow_percent: Option<u32>,
    loss_ppm: Option<u32>,
    samples: u64,
    sample_age_ns: Option<u64>,
}

impl<'a> PathDocument<'a> {
    fn of(state: &'a PathState) -> Self {
        Self {
            path: display::path_letter(state.path),
            via: &state.via,
            rtt_ns: Some(state.rtt_ns).filter(|rtt| *rtt > 0),
            rtt_min_ns: Some(state.rtt_min_ns).filter(|rtt| *rtt > 0),
            rtt_configured_ns: state.rtt_configured_ns,
            queue_packets: state.queue_packets,
            queue_delay_ns: state.queue_delay_ns,
            gap: Some(state.gap).filter(|gap| *gap > 0),
            dead: state.dead,
            slow_percent: Some(state.slow_percent).filter(|percent| *percent > 0),
            loss_ppm: Some(state.loss_ppm).filter(|ppm| *ppm > 0),
            samples: state.samples,
            sample_age_ns: Some(state.sample_age_ns).filter(|_| state.samples > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern() -> LeafPairPattern {
        let path = |path, via: &str, rtt_ns, gap| PathState {
            path,
            via: via.to_owned(),
            rtt_ns,
            rtt_configured_ns: 132_000,
            gap,
            ..PathState::default()
        };
        LeafPairPattern {
            source_leaf: 1,
            destination_leaf: 2,
            source: "leaf1".into(),
            destination: "leaf2".into(),
            version: 7,
            age_ns: 3_200_000,
            time_to_live_ns: 200_000_000,
            paths: vec![path(0, "spine1", 132_000, 4), path(1, "spine2", 0, 0)],
            sequence: vec![0, 0, 0, 0, 1],
            acknowledged_by: vec!["h1_1".into(), "h1_2".into()],
        }
    }

    #[test]
    fn a_pattern_is_shown_with_its_paths_and_its_users() {
        let text = pattern_text(&pattern());
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "leaf1 -> leaf2 version 7, 3.20 ms old, renewed for 200 ms each time",
                "path via RTT configured queue gap",
                "A spine1 132 us 132 us 0 4",
                "B spine2 - 132 us 0 -",
                "sequence AAAAB",
                "in use by h1_1 h1_2",
            ]
        );
    }

    #[test]
    fn json_has_null_for_what_was_not_measured() {
        let document = serde_json::to_value(PatternDocument::of(&pattern())).unwrap();
        assert_eq!(document["sequence"], "AAAAB");
        assert_eq!(document["paths"][0]["rtt_ns"], 132_000);
        assert!(document["paths"][1]["rtt_ns"].is_null());
        assert!(document["paths"][1]["gap"].is_null());
    }

    #[test]
    fn every_path_of_every_pair_has_a_row() {
        let pattern = pattern();
        let pairs = [LeafPairPaths {
            source_leaf: 1,
            destination_leaf: 2,
            source: "leaf1".into(),
            destination: "leaf2".into(),
            paths: pattern.paths,
        }];
        assert_eq!(paths_text(&pairs).lines().count(), 3);
    }
}
