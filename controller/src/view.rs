// SPDX-License-Identifier: Apache-2.0

//! Converts engine state to `weft.v1` messages.

use std::net::Ipv4Addr;

use weft_proto::v1;
use weft_topology::Host;

use crate::classes::{CLASSES, Classes, SentClass, Thresholds, WINDOW_BYTES, WINDOWS, by_sent};
use crate::engine::{Decision, Engine, Pattern, Verdict};
use crate::fabric::{LeafPair, RoutedFabric};
use crate::gray_failure::BLOCK_PACKETS;
use crate::telemetry::{Sample, Waiting};

/// The measurements of every path of `pair`.
#[must_use]
pub fn paths(engine: &Engine, now_ns: u64, pair: LeafPair) -> Vec<v1::PathState> {
    let pattern = engine.pattern(pair);
    (0..engine.fabric().paths())
        .map(|path| {
            let stats = engine.telemetry().path(pair, path);
            let queue = engine
                .telemetry()
                .queue(engine.fabric(), now_ns, pair, path);
            v1::PathState {
                path: path.into(),
                via: engine.fabric().via(pair, path),
                rtt_ns: stats.and_then(|stats| stats.rtt_ns(now_ns)).unwrap_or(0),
                rtt_min_ns: stats.map_or(0, |stats| stats.min_ns),
                rtt_configured_ns: engine.fabric().configured_rtt_ns(pair, path).unwrap_or(0),
                queue_packets: queue.depth_packets,
                queue_delay_ns: queue.delay_ns,
                gap: pattern
                    .and_then(|pattern| pattern.gaps.get(usize::from(path)))
                    .copied()
                    .unwrap_or(0),
                samples: stats.map_or(0, |stats| stats.samples),
                sample_age_ns: stats
                    .filter(|stats| stats.samples > 0)
                    .map_or(0, |stats| now_ns.saturating_sub(stats.last_ns)),
                rejected_samples: stats.map_or(0, |stats| stats.rejected_samples),
                dead: engine.liveness().is_dead(pair, path),
                slow_percent: engine
                    .slow_percent(pair, path)
                    .and_then(|percent| u32::try_from(percent).ok())
                    .unwrap_or(0),
                rate_bps: engine.rate_bps(pair, path).unwrap_or(0),
                loss_ppm: engine.loss_ppm(pair, path).unwrap_or(0),
            }
        })
        .collect()
}

/// Explains the pattern of `pair` at `now_ns`.
#[must_use]
pub fn explanation(engine: &Engine, now_ns: u64, pair: LeafPair) -> v1::Explanation {
    use v1::explanation::Verdict as Shown;
    let assessment = engine.assess(now_ns, pair);
    let (verdict, resting_ns) = match assessment.verdict {
        Verdict::KernelRtt => (Shown::KernelRtt, 0),
        Verdict::Ecmp => (Shown::Ecmp, 0),
        Verdict::Unmeasured => (Shown::Unmeasured, 0),
        Verdict::Right => (Shown::Right, 0),
        Verdict::Sticky => (Shown::Sticky, 0),
        Verdict::Resting { until_ns } => (Shown::Resting, until_ns.saturating_sub(now_ns)),
        Verdict::Held { until_ns } => (Shown::Held, until_ns.saturating_sub(now_ns)),
        Verdict::Due(_) => (Shown::Due, 0),
    };
    v1::Explanation {
        source_leaf: pair.source.into(),
        destination_leaf: pair.destination.into(),
        input: engine.config().input.to_string(),
        paths: paths(engine, now_ns, pair),
        costs_ns: assessment.costs_ns,
        plain_gaps: assessment.plain_gaps,
        gaps: assessment.gaps,
        verdict: verdict.into(),
        resting_ns,
        history: engine.history(pair).map(decision).collect(),
        source: engine.fabric().leaf_name(pair.source).to_owned(),
        destination: engine.fabric().leaf_name(pair.destination).to_owned(),
    }
}

/// The classes, their thresholds, and why. `acknowledged_by` are the hosts that run these, and
/// `waits` is what waits in each class now.
#[must_use]
pub fn classes(
    classes: &Classes,
    acknowledged_by: Vec<String>,
    waits: &[Waiting; CLASSES],
) -> v1::ExplainClassesResponse {
    let bound = |class: u8| {
        let place = usize::from(class).checked_sub(1)?;
        classes.most_bytes().get(place).copied()
    };
    let class = |class: u8| v1::PriorityClass {
        most_bytes: bound(class).unwrap_or(0),
        share_ppm: ppm_of(classes.shares(), class),
        rate_ppm: ppm_of(classes.rates(), class),
        waiting: waits.get(usize::from(class)).map(waiting),
    };
    let decision = |decided: &Thresholds| v1::ThresholdsDecision {
        version: decided.version,
        decided_ns: decided.at_ns,
        most_bytes: decided.most_bytes.clone(),
        seen_bytes: decided.seen_bytes,
        waiting_ppm: ppm(decided.waiting),
    };
    v1::ExplainClassesResponse {
        classes: (0..classes.count()).map(class).collect(),
        version: classes.decided().map_or(0, |decided| decided.version),
        acknowledged_by,
        history: classes.history().iter().map(decision).collect(),
        seen_bytes: classes.seen_bytes(),
        needed_bytes: WINDOW_BYTES,
        adapts: classes.adapts(),
        windows: u32::try_from(classes.windows()).unwrap_or(u32::MAX),
        needed_windows: WINDOWS as u32,
        by_sent: by_sent(classes.most_bytes()).iter().map(sent).collect(),
    }
}

fn sent(class: &SentClass) -> v1::ClassBySent {
    v1::ClassBySent {
        class_number: class.class.into(),
        most_bytes: class.most_bytes,
    }
}

fn waiting(class: &Waiting) -> v1::Waiting {
    v1::Waiting {
        depth_packets: class.depth_packets,
        delay_ns: class.delay_ns,
    }
}

/// A share in millionths; 0 if there is none for the class.
fn ppm_of(shares: &[f64], class: u8) -> u32 {
    shares
        .get(usize::from(class))
        .map_or(0, |&share| ppm(share))
}

fn ppm(share: f64) -> u32 {
    (share * 1e6).round() as u32
}

fn decision(decision: &Decision) -> v1::Decision {
    let Decision {
        pattern, trigger, ..
    } = decision;
    v1::Decision {
        version: pattern.version,
        decided_ns: pattern.at_ns,
        rule: decision.rule.name().to_owned(),
        costs_ns: pattern.costs_ns.clone(),
        gaps: pattern.gaps.clone(),
        sequence: pattern.sequence.iter().map(|&path| path.into()).collect(),
        rested: decision.rested,
        trigger: trigger
            .as_ref()
            .map(|trigger| telemetry_event(trigger.at_ns, &trigger.switch, &trigger.sample)),
        sampled_ns: trigger
            .as_ref()
            .and_then(|trigger| trigger.sampled_ns)
            .unwrap_or(0),
    }
}

/// Every host that `host` gets patterns for, with the local addresses whose subflows take
/// each path there.
#[must_use]
pub fn peers(fabric: &RoutedFabric, host: &Host) -> Vec<v1::Peer> {
    let pairs = fabric.pairs_from(host.leaf);
    let hosts = pairs.flat_map(|pair| fabric.hosts_of(pair.destination));
    hosts
        .filter_map(|peer| {
            let paths = 0..fabric.paths();
            let local = |path| Some(fabric.local_address(host, peer, path)?.into());
            Some(v1::Peer {
                destination: Some(prefix(*peer.addresses.first()?, peer.prefix_len)),
                leaf: peer.leaf.into(),
                local_addresses: paths.map(local).collect::<Option<_>>()?,
            })
        })
        .collect()
}

/// The pattern of `pair` for all hosts of its source leaf. ACKs carry their queueing time in
/// units of `wait_unit_ns`.
#[must_use]
pub fn leaf_pattern(
    time_to_live_ns: u64,
    wait_unit_ns: u32,
    pair: LeafPair,
    pattern: &Pattern,
) -> v1::LeafPattern {
    v1::LeafPattern {
        destination_leaf: pair.destination.into(),
        version: pattern.version,
        time_to_live_ns,
        gaps: pattern.gaps.clone(),
        rtts_ns: pattern.costs_ns.clone(),
        lowest_rtts_ns: pattern.lowest_ns.clone(),
        sequence: pattern.sequence.iter().map(|&path| path.into()).collect(),
        wait_unit_ns,
    }
}

fn prefix(address: Ipv4Addr, length: u8) -> v1::Prefix {
    let host_bits = 32 - u32::from(length.min(32));
    let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
    v1::Prefix {
        address: u32::from(address) & mask,
        length: length.into(),
    }
}

/// A sample of `switch` as a message for users.
#[must_use]
pub fn telemetry_event(now_ns: u64, switch: &str, sample: &Sample) -> v1::TelemetryEvent {
    use v1::telemetry_event::Sample as Shown;
    v1::TelemetryEvent {
        time_ns: now_ns,
        switch: switch.to_owned(),
        sample: Some(match sample {
            Sample::Rtt(sample) => Shown::Rtt(v1::RttSample {
                source_address: sample.source.into(),
                destination_address: sample.destination.into(),
                source_port: sample.source_port.into(),
                destination_port: sample.destination_port.into(),
                path: sample.path.into(),
                length_bytes: sample.length_bytes.into(),
                rtt_ns: sample.rtt_ns,
            }),
            Sample::Queue(sample) => Shown::Queue(v1::QueueSample {
                port: sample.port.into(),
                depth_packets: sample.depth_packets,
                delay_ns: sample.delay_ns,
                classes: sample.classes.iter().flatten().map(waiting).collect(),
            }),
            Sample::Classes(sample) => Shown::Classes(v1::ClassSample {
                port: sample.port.into(),
                bytes: sample.bytes.to_vec(),
            }),
            Sample::Loss(sample) => Shown::Loss(v1::LossSample {
                port: sample.port.into(),
                packets: u64::from(sample.blocks) * u64::from(BLOCK_PACKETS),
                lost_packets: sample.lost,
            }),
        }),
    }
}
