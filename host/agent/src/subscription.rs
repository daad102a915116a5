// SPDX-License-Identifier: Apache-2.0

//! One host's subscription: applies the controller's patterns and thresholds in its kernel.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tonic::transport::Channel;
use tracing::{debug, info, warn};
use weft_proto::v1::weft_client::WeftClient;
use weft_proto::v1::{AckPatternsRequest, LeafPattern, PatternUpdate, WatchPatternsRequest};

use crate::installed::Installed;
use crate::weft::{LocalPath, Pattern, Prefix, Thresholds, Weft};

/// Wait before the next attempt to reach a controller: at first, and at most.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// Keeps `host` subscribed, forever, to whichever of `controllers` is primary; the others
/// refuse. Without a primary, the kernel's patterns stay until they expire, so nothing is
/// withdrawn here. `subscribed` is signalled at the first stream.
pub async fn run(
    host: &str,
    mut kernel: Weft,
    controllers: Vec<Channel>,
    subscribed: oneshot::Sender<()>,
) {
    let mut clients: Vec<_> = controllers.into_iter().map(WeftClient::new).collect();
    let held = kernel.patterns().unwrap_or_else(|error| {
        warn!(host, "reading the patterns of an earlier agent: {error}");
        Vec::new()
    });
    let mut installed = Installed::new(&held, now_ns());
    let mut subscribed = Some(subscribed);
    let mut wait = RETRY;
    loop {
        for client in &mut clients {
            match watch(host, &mut kernel, &mut installed, client, &mut subscribed).await {
                Ok(updates) => {
                    info!(host, updates, "the controller ended the stream");
                    wait = RETRY;
                }
                Err(error) => debug!(host, "{error:#}"),
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
}

/// Serves one stream until it ends. Returns the number of its updates.
async fn watch(
    host: &str,
    kernel: &mut Weft,
    installed: &mut Installed,
    client: &mut WeftClient<Channel>,
    subscribed: &mut Option<oneshot::Sender<()>>,
) -> Result<u64> {
    let request = WatchPatternsRequest {
        host: host.to_owned(),
    };
    let mut stream = client
        .watch_patterns(request)
        .await
        .context("watching patterns")?
        .into_inner();
    if let Some(subscribed) = subscribed.take() {
        // If the agent is stopping, nobody waits for the signal.
        let _ = subscribed.send(());
    }
    installed.start_stream();
    let mut stream_state = StreamState::default();
    let mut updates = 0;
    // An error after the first update means that the controller died, which also ends the stream.
    while let Ok(Some(update)) = stream.message().await {
        updates += 1;
        let brings_news = !(update.patterns.is_empty() && update.withdrawn.is_empty())
            || update.thresholds.is_some();
        // A renewal changes nothing, so it needs no acknowledgement.
        if apply(host, kernel, installed, &mut stream_state, &update) && brings_news {
            let ack = AckPatternsRequest {
                host: host.to_owned(),
                update: update.update,
                applied_ns: now_ns(),
            };
            client
                .ack_patterns(ack)
                .await
                .context("acknowledging patterns")?;
        }
    }
    Ok(updates)
}

/// What the current stream has sent, apart from its patterns.
#[derive(Debug, Default)]
struct StreamState {
    peers: Peers,
    thresholds: Option<Thresholds>,
}

/// Applies `update`. Returns whether the kernel has all of it, or something newer.
fn apply(
    host: &str,
    kernel: &mut Weft,
    installed: &mut Installed,
    stream: &mut StreamState,
    update: &PatternUpdate,
) -> bool {
    let StreamState { peers, thresholds } = stream;
    let mut taken = apply_thresholds(host, kernel, thresholds, update);
    if !peers.extend(&update.peers) {
        warn!(host, "malformed peer in an update");
        taken = false;
    }
    for prefix in update.withdrawn.iter().filter_map(prefix) {
        installed.withdraw(prefix);
        match kernel.delete(prefix) {
            Err(error) if !error.is(nix::errno::Errno::ENOENT) => {
                warn!(host, %prefix, "withdrawing a pattern: {error}");
                taken = false;
            }
            _ => {}
        }
    }
    let mut patterns = Vec::new();
    for pattern in &update.patterns {
        if let Some(of_peers) = peers.kernel_patterns(pattern) {
            patterns.extend(of_peers);
        } else {
            let version = pattern.version;
            warn!(host, version, "malformed pattern in an update");
            taken = false;
        }
    }
    let change = installed.receive(now_ns(), patterns, update.renew);
    for &prefix in &change.delete {
        if let Err(error) = kernel.delete(prefix) {
            warn!(host, %prefix, "deleting an expired pattern: {error}");
        }
    }
    if change.renew {
        if let Err(error) = kernel.renew() {
            warn!(host, "renewing patterns: {error}");
            taken = false;
        }
    }
    match kernel.set(&change.set) {
        Ok(refused) => {
            for (index, error) in refused {
                let Pattern {
                    prefix, version, ..
                } = change.set[index];
                warn!(host, %prefix, version, "setting a pattern: {error}");
                installed.not_installed(prefix);
                taken = false;
            }
        }
        Err(error) => {
            warn!(host, "setting patterns: {error}");
            change
                .set
                .iter()
                .for_each(|pattern| installed.not_installed(pattern.prefix));
            taken = false;
        }
    }
    taken
}

/// Sets the thresholds of `update`, or renews those of the stream. Returns whether the kernel
/// has them. A renewal is a SET of the same: one message, once per time to live or so.
fn apply_thresholds(
    host: &str,
    kernel: &mut Weft,
    thresholds: &mut Option<Thresholds>,
    update: &PatternUpdate,
) -> bool {
    if let Some(new) = &update.thresholds {
        *thresholds = Some(Thresholds {
            version: new.version,
            time_to_live_ns: new.time_to_live_ns,
            age_ns: 0,
            most_bytes: new.most_bytes.clone(),
        });
    } else if !update.renew {
        return true;
    }
    let Some(thresholds) = thresholds else {
        return true;
    };
    match kernel.set_thresholds(thresholds) {
        Ok(()) => true,
        Err(error) => {
            let version = thresholds.version;
            warn!(host, version, "setting thresholds between classes: {error}");
            false
        }
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
fn now_ns() -> u64 {
    // Linux always has this clock, and it counts from boot, so it's never negative.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

/// The hosts that a stream's patterns apply to, by leaf: each with its prefix and the local
/// addresses whose subflows take each path to it.
#[derive(Debug, Default)]
struct Peers(BTreeMap<u32, Vec<(Prefix, Vec<Ipv4Addr>)>>);

impl Peers {
    /// Adds the peers of a stream's first update. Returns whether they were well-formed.
    fn extend(&mut self, peers: &[weft_proto::v1::Peer]) -> bool {
        let mut understood = true;
        for peer in peers {
            let Some(prefix) = peer.destination.as_ref().and_then(prefix) else {
                understood = false;
                continue;
            };
            let locals = peer.local_addresses.iter().copied();
            let locals = locals.map(Ipv4Addr::from).collect();
            self.0.entry(peer.leaf).or_default().push((prefix, locals));
        }
        understood
    }

    /// `pattern` as kernel patterns, one for each host of its leaf; `None` if it is malformed.
    fn kernel_patterns(&self, pattern: &LeafPattern) -> Option<Vec<Pattern>> {
        let sequence = pattern.sequence.iter();
        let sequence: Vec<u8> = sequence
            .map(|path| u8::try_from(*path).ok())
            .collect::<Option<_>>()?;
        let paths = pattern.gaps.len();
        let lowest = &pattern.lowest_rtts_ns;
        let fits = paths == pattern.rtts_ns.len()
            && (lowest.is_empty() || paths == lowest.len())
            && sequence.iter().all(|&path| usize::from(path) < paths);
        let peers = self.0.get(&pattern.destination_leaf);
        let peers = peers.map_or(&[][..], Vec::as_slice);
        if !fits || peers.iter().any(|(_, locals)| locals.len() != paths) {
            return None;
        }
        let lowest = || lowest.iter().copied().chain(std::iter::repeat(0));
        let costs = || pattern.gaps.iter().zip(&pattern.rtts_ns).zip(lowest());
        let patterns = peers.iter().map(|(prefix, locals)| Pattern {
            prefix: *prefix,
            version: pattern.version,
            time_to_live_ns: pattern.time_to_live_ns,
            age_ns: 0,
            paths: locals
                .iter()
                .zip(costs())
                .map(|(&local, ((&gap, &rtt_ns), lowest_rtt_ns))| LocalPath {
                    local,
                    gap,
                    rtt_ns,
                    lowest_rtt_ns,
                })
                .collect(),
            sequence: sequence.clone(),
            wait_unit_ns: pattern.wait_unit_ns,
        });
        Some(patterns.collect())
    }
}

fn prefix(prefix: &weft_proto::v1::Prefix) -> Option<Prefix> {
    Some(Prefix {
        address: Ipv4Addr::from(prefix.address),
        length: u8::try_from(prefix.length).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers() -> Peers {
        let mut peers = Peers::default();
        let peer = |host: u32| weft_proto::v1::Peer {
            destination: Some(weft_proto::v1::Prefix {
                address: 0x0a02_0000 + host * 256,
                length: 24,
            }),
            leaf: 2,
            local_addresses: vec![0x0a01_0102, 0x0a01_0101],
        };
        assert!(peers.extend(&[peer(1), peer(2)]));
        peers
    }

    fn pattern() -> LeafPattern {
        LeafPattern {
            destination_leaf: 2,
            version: 3,
            time_to_live_ns: 1_000,
            gaps: vec![2, 1],
            rtts_ns: vec![9, 18],
            sequence: vec![0, 0, 1],
            wait_unit_ns: 1024,
            lowest_rtts_ns: vec![8, 0],
        }
    }

    #[test]
    fn a_pattern_is_one_of_the_kernels_for_each_host_of_its_leaf() {
        let patterns = peers().kernel_patterns(&pattern()).unwrap();
        let prefixes: Vec<_> = patterns.iter().map(|p| p.prefix.to_string()).collect();
        assert_eq!(prefixes, ["10.2.1.0/24", "10.2.2.0/24"]);
        let path = |last, gap, rtt_ns, lowest_rtt_ns| LocalPath {
            local: Ipv4Addr::new(10, 1, 1, last),
            gap,
            rtt_ns,
            lowest_rtt_ns,
        };
        for pattern in patterns {
            assert_eq!(pattern.paths, [path(2, 2, 9, 8), path(1, 1, 18, 0)]);
            assert_eq!((pattern.version, pattern.sequence), (3, vec![0, 0, 1]));
            assert_eq!(pattern.wait_unit_ns, 1024);
        }
        let elsewhere = LeafPattern {
            destination_leaf: 3,
            ..pattern()
        };
        assert_eq!(peers().kernel_patterns(&elsewhere), Some(vec![]));
    }

    #[test]
    fn patterns_and_peers_that_no_kernel_takes_are_refused() {
        let refused = [
            LeafPattern {
                sequence: vec![256],
                ..pattern()
            },
            LeafPattern {
                sequence: vec![2],
                ..pattern()
            },
            LeafPattern {
                gaps: vec![1],
                ..pattern()
            },
            LeafPattern {
                lowest_rtts_ns: vec![8],
                ..pattern()
            },
            LeafPattern {
                gaps: vec![1; 3],
                rtts_ns: vec![1; 3],
                ..pattern()
            },
        ];
        for pattern in refused {
            assert_eq!(peers().kernel_patterns(&pattern), None, "{pattern:?}");
        }
        assert!(!Peers::default().extend(&[weft_proto::v1::Peer::default()]));
    }
}
