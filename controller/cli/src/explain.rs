// SPDX-License-Identifier: Apache-2.0

//! `weft explain` and `weft patterns --history`: why patterns are what they are.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Value, json};
use weft_controller::engine::HISTORY_DECISIONS;
use weft_proto::v1::explanation::Verdict;
use weft_proto::v1::{
    Decision, ExplainPatternsRequest, Explanation, GetTopologyRequest, PathState,
};
use weft_text::table::Table;
use weft_text::units::{format_duration, format_rate};
use weft_topology::{Role, Topology};

use crate::query::{QueryArgs, duration_or_dash, queueing};
use crate::{Outcome, classes, client, display, telemetry};

/// A pair of hosts or leaves.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Sending host or leaf, such as h1_1 or leaf1
    #[arg(value_name = "SRC")]
    source: String,

    /// Receiving host or leaf
    #[arg(value_name = "DST")]
    destination: String,

    #[command(flatten)]
    query: QueryArgs,
}

/// Says why the pattern between two hosts is what it is now.
pub async fn explain(args: &ExplainArgs) -> Outcome {
    let mut client = client::connect(&args.query.lab.name).await?;
    let answer = client.get_topology(GetTopologyRequest {}).await;
    let json = answer.map_err(client::refusal)?.into_inner().json;
    let topology: Topology = serde_json::from_str(&json).context("the controller's topology")?;
    let (source, destination) = (
        leaf_of(&topology, &args.source)?,
        leaf_of(&topology, &args.destination)?,
    );
    if source == destination {
        if args.query.json {
            return display::out_json(&document_of_leaf(source));
        }
        return display::out(format!(
            "{} and {} are on {}: one path, no pattern\n",
            args.source,
            args.destination,
            leaf_name(&topology, source)
        ));
    }
    let request = ExplainPatternsRequest {
        source_leaf: source.into(),
        destination_leaf: destination.into(),
    };
    let answer = client.explain_patterns(request).await;
    let pairs = answer.map_err(client::refusal)?.into_inner().pairs;
    let of_classes = classes::of(&mut client).await?;
    if args.query.json {
        let mut documents: Vec<Value> = pairs.iter().map(document).collect();
        if let Some(document) = documents.first_mut() {
            document["classes"] = classes::document(&of_classes);
        }
        return display::out_json(&documents.first());
    }
    let mut shown: String = pairs.iter().map(text).collect();
    if !of_classes.classes.is_empty() {
        shown += &classes::text(&of_classes);
    }
    display::out(shown)
}

/// Shows the last patterns of every pair of leaves, each with what led to it.
pub async fn history(args: &QueryArgs) -> Outcome {
    let mut client = client::connect(&args.lab.name).await?;
    let request = ExplainPatternsRequest::default();
    let answer = client.explain_patterns(request).await;
    let pairs = answer.map_err(client::refusal)?.into_inner().pairs;
    if args.json {
        return display::out_json(&pairs.iter().map(document).collect::<Vec<_>>());
    }
    let known = pairs.iter().filter(|pair| !pair.history.is_empty());
    let text: Vec<String> = known.map(history_text).collect();
    if text.is_empty() {
        return display::out("no pattern yet: no host has sent data to another leaf\n");
    }
    display::out(text.join("\n"))
}

fn leaf_of(topology: &Topology, name: &str) -> anyhow::Result<u8> {
    let host = topology.host(name).map(|host| host.leaf);
    let leaf = || {
        let leaf = topology.switch(name)?;
        (leaf.role == Role::Leaf).then_some(leaf.index)
    };
    host.or_else(leaf)
        .ok_or_else(|| anyhow!("the topology has no host or leaf {name:?}"))
}

fn leaf_name(topology: &Topology, leaf: u8) -> &str {
    let mut switches = topology.switches.iter();
    switches
        .find(|switch| switch.role == Role::Leaf && switch.index == leaf)
        .map_or("one leaf", |switch| &switch.name)
}

fn text(pair: &Explanation) -> String {
    let mut table = Table::new(
        3,
        [
            "",
            "path",
            "via",
            "RTT",
            "lowest",
            "queueing",
            "samples",
            "rate",
            "cost",
            "gap by both",
            "gap",
        ],
    );
    for (place, path) in pair.paths.iter().enumerate() {
        table.push(path_row(pair, place, path));
    }
    let mut text = format!("{}   cost is {}\n{table}", heading(pair), pair.input);
    text += &match pair.history.last() {
        None => "  no pattern: hosts use their own RTT\n".to_owned(),
        Some(decision) => format!("  in force  {}\n", decision_text(decision)),
    };
    text + &format!("  now       {}\n", verdict_text(pair))
}

fn path_row(pair: &Explanation, place: usize, path: &PathState) -> Vec<String> {
    let number = |of: &[u32]| of.get(place).map_or("-".to_owned(), u32::to_string);
    vec![
        String::new(),
        display::path_letter(path.path).to_string(),
        format!("{}{}", path.via, faults(path)),
        duration_or_dash(path.rtt_ns),
        duration_or_dash(path.rtt_min_ns),
        queueing(path.queue_delay_ns),
        path.samples.to_string(),
        format_rate(path.rate_bps),
        match pair.costs_ns.get(place) {
            _ if path.dead => "dead".to_owned(),
            Some(0) if path.loss_ppm > 0 => "gray".to_owned(),
            cost => duration_or_dash(cost.copied().unwrap_or(0)),
        },
        number(&pair.plain_gaps),
        number(&pair.gaps),
    ]
}

/// What is wrong with the links of a path.
fn faults(path: &PathState) -> String {
    let slow = match path.slow_percent {
        0 => String::new(),
        percent => format!(" (at {percent}% of its rate)"),
    };
    let lossy = match path.loss_ppm {
        0 => String::new(),
        ppm => format!(" (loses {:.1}%)", f64::from(ppm) / 1e4),
    };
    slow + &lossy
}

fn history_text(pair: &Explanation) -> String {
    let mut text = heading(pair);
    if pair.history.len() == HISTORY_DECISIONS {
        text += &format!("   the last {HISTORY_DECISIONS}");
    }
    text.push('\n');
    for decision in &pair.history {
        text += &format!("  {}\n", decision_text(decision));
    }
    text
}

fn heading(pair: &Explanation) -> String {
    format!("{} -> {}", pair.source, pair.destination)
}

/// When, what, why, and by which sample.
fn decision_text(decision: &Decision) -> String {
    let costs: Vec<String> = decision
        .costs_ns
        .iter()
        .map(|&ns| match ns {
            0 => "out".to_owned(),
            ns => format_duration(ns as f64),
        })
        .collect();
    let rested = if decision.rested {
        ", after a rest"
    } else {
        ""
    };
    let sample = match &decision.trigger {
        Some(event) => format!("\n              by {}", telemetry::text(event).trim_start()),
        None => String::new(),
    };
    format!(
        "{:12.6}  {:<8}  {}{rested} ({}){sample}",
        decision.decided_ns as f64 / 1e9,
        display::sequence(&decision.sequence),
        rule_text(&decision.rule),
        costs.join(", "),
    )
}

fn rule_text(rule: &str) -> &str {
    match rule {
        "first" => "first pattern: every path has a cost",
        "moved" => "a path cost changed clearly enough to change a gap",
        "idle" => "no samples for a while, so queues are empty",
        "failed" => "a path failed",
        "gray" => "a path drops packets",
        "herd" => {
            "this pair's own traffic fills the queues, so only path rates set the pattern for now"
        }
        "returned" => "a path recovered",
        other => other,
    }
}

fn verdict_text(pair: &Explanation) -> String {
    match pair.verdict() {
        Verdict::KernelRtt => "hosts compute patterns from their kernels' own RTTs".to_owned(),
        Verdict::Ecmp => {
            "no pattern: with this --routing, addresses do not decide the path".to_owned()
        }
        Verdict::Unmeasured => "no pattern yet: a path has not been measured".to_owned(),
        Verdict::Right => "the pattern in force matches the current path costs".to_owned(),
        Verdict::Sticky => {
            "path costs changed, but not clearly enough for another pattern".to_owned()
        }
        Verdict::Resting => format!(
            "path costs ask for another pattern, which has to wait {} more",
            format_duration(pair.resting_ns as f64)
        ),
        Verdict::Held => format!(
            "this pair's own traffic fills the queues, so only path rates set the pattern for {} more",
            format_duration(pair.resting_ns as f64)
        ),
        Verdict::Due => "another pattern is about to be set".to_owned(),
        Verdict::Unspecified => "unknown to this version of weft".to_owned(),
    }
}

fn document(pair: &Explanation) -> Value {
    let decision = |decision: &Decision| {
        json!({
            "version": decision.version,
            "decided_ns": decision.decided_ns,
            "rule": decision.rule,
            "costs_ns": decision.costs_ns,
            "gaps": decision.gaps,
            "sequence": display::sequence(&decision.sequence),
            "rested": decision.rested,
            "trigger": decision.trigger.as_ref().map(telemetry::document),
            "sampled_ns": Some(decision.sampled_ns).filter(|ns| *ns > 0),
        })
    };
    let path = |path: &PathState| {
        json!({
            "path": display::path_letter(path.path),
            "via": path.via,
            "rtt_ns": Some(path.rtt_ns).filter(|ns| *ns > 0),
            "rtt_min_ns": Some(path.rtt_min_ns).filter(|ns| *ns > 0),
            "queue_delay_ns": path.queue_delay_ns,
            "samples": path.samples,
            "rate_bps": path.rate_bps,
            "dead": path.dead,
            "slow_percent": Some(path.slow_percent).filter(|percent| *percent > 0),
            "loss_ppm": Some(path.loss_ppm).filter(|ppm| *ppm > 0),
        })
    };
    json!({
        "source_leaf": pair.source_leaf,
        "destination_leaf": pair.destination_leaf,
        "input": pair.input,
        "paths": pair.paths.iter().map(path).collect::<Vec<_>>(),
        "costs_ns": pair.costs_ns,
        "plain_gaps": pair.plain_gaps,
        "gaps": pair.gaps,
        "verdict": pair.verdict().as_str_name().trim_start_matches("VERDICT_").to_lowercase(),
        "resting_ns": pair.resting_ns,
        "history": pair.history.iter().map(decision).collect::<Vec<_>>(),
    })
}

/// Of two hosts on one leaf.
fn document_of_leaf(leaf: u8) -> Value {
    let mut document = document(&Explanation {
        source_leaf: leaf.into(),
        destination_leaf: leaf.into(),
        ..Explanation::default()
    });
    document["verdict"] = json!("same_leaf");
    document
}

#[cfg(test)]
mod tests {
    use weft_proto::v1::telemetry_event::Sample;
    use weft_proto::v1::{QueueSample, TelemetryEvent};

    use super::*;

    fn explanation() -> Explanation {
        let path = |path, via: &str, dead| PathState {
            path,
            via: via.to_owned(),
            rtt_ns: 132_000,
            rtt_min_ns: 118_000,
            samples: 9,
            rate_bps: 1_000_000_000,
            dead,
            ..PathState::default()
        };
        Explanation {
            source_leaf: 1,
            destination_leaf: 2,
            source: "leaf1".into(),
            destination: "leaf2".into(),
            input: "rtt+queue".into(),
            paths: vec![path(0, "spine1", false), path(1, "spine2", true)],
            costs_ns: vec![118_000, 0],
            plain_gaps: vec![1, 0],
            gaps: vec![1, 0],
            verdict: Verdict::Resting.into(),
            resting_ns: 250_000,
            history: vec![
                Decision {
                    decided_ns: 1_500_000_000,
                    rule: "moved".into(),
                    costs_ns: vec![118_000, 354_000],
                    gaps: vec![3, 1],
                    sequence: vec![0, 0, 0, 1],
                    trigger: Some(TelemetryEvent {
                        time_ns: 1_499_900_000,
                        switch: "spine2".into(),
                        sample: Some(Sample::Queue(QueueSample {
                            port: 2,
                            depth_packets: 20,
                            delay_ns: 240_000,
                            classes: Vec::new(),
                        })),
                    }),
                    ..Decision::default()
                },
                Decision {
                    decided_ns: 1_600_000_000,
                    rule: "failed".into(),
                    costs_ns: vec![118_000, 0],
                    gaps: vec![1, 0],
                    sequence: vec![0],
                    ..Decision::default()
                },
            ],
        }
    }

    #[test]
    fn an_explanation_says_which_costs_which_rule_and_what_is_next() {
        let text = text(&explanation());
        let words: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            words,
            [
                "leaf1 -> leaf2 cost is rtt+queue",
                "path via RTT lowest queueing samples rate cost gap by both gap",
                "A spine1 132 us 118 us none 9 1gbit 118 us 1 1",
                "B spine2 132 us 118 us none 9 1gbit dead 0 0",
                "in force 1.600000 A a path failed (118 us, out)",
                "now path costs ask for another pattern, which has to wait 250 us more",
            ]
        );
    }

    #[test]
    fn a_history_names_the_sample_behind_each_pattern() {
        let text = history_text(&explanation());
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("AAAB"), "{text}");
        assert!(
            text.contains("by 1.499900  spine2    queue port 2"),
            "{text}"
        );
    }

    #[test]
    fn documents_have_null_where_no_sample_led_to_a_pattern() {
        let document = document(&explanation());
        assert_eq!(document["verdict"], "resting");
        assert_eq!(document["history"][0]["trigger"]["queue"]["port"], 2);
        assert!(document["history"][1]["trigger"].is_null());
    }

    #[test]
    fn hosts_on_one_leaf_get_a_document_of_the_same_form() {
        let keys = |document: &Value| -> Vec<String> {
            document.as_object().unwrap().keys().cloned().collect()
        };
        let same = document_of_leaf(2);
        assert_eq!(keys(&same), keys(&document(&explanation())));
        assert_eq!(same["verdict"], "same_leaf");
        assert_eq!(
            (&same["source_leaf"], &same["destination_leaf"]),
            (&json!(2), &json!(2))
        );
        assert_eq!(same["history"], json!([]));
    }
}
