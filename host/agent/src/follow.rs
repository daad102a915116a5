//! The stream of one host: from the controller into its kernel.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tonic::transport::Channel;
use tracing::{debug, info, warn};
use weft_proto::v1::weft_client::WeftClient;
use weft_proto::v1::{AckPatternsRequest, HostPattern, PatternUpdate, WatchPatternsRequest};

use crate::ledger::Ledger;
use crate::weft::{LocalPath, Pattern, Prefix, Weft};

/// Waits between two tries to reach the controller: the first, and the longest.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// Follows the patterns for `host` for ever, of whichever of `controllers` is
/// primary: the others refuse. While there is none, the kernel's patterns live out
/// their time to live, so nothing is withdrawn here. `followed` hears of the first
/// stream.
pub async fn follow(
    host: &str,
    mut kernel: Weft,
    controllers: Vec<Channel>,
    followed: oneshot::Sender<()>,
) {
    let mut clients: Vec<_> = controllers.into_iter().map(WeftClient::new).collect();
    let held = kernel.patterns().unwrap_or_else(|error| {
        warn!(host, "patterns of an agent before this one: {error}");
        Vec::new()
    });
    let mut ledger = Ledger::new(&held, now_ns());
    let mut followed = Some(followed);
    let mut wait = RETRY;
    loop {
        for client in &mut clients {
            match watch(host, &mut kernel, &mut ledger, client, &mut followed).await {
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

/// One stream to its end; gives the number of its updates.
async fn watch(
    host: &str,
    kernel: &mut Weft,
    ledger: &mut Ledger,
    client: &mut WeftClient<Channel>,
    followed: &mut Option<oneshot::Sender<()>>,
) -> Result<u64> {
    let request = WatchPatternsRequest {
        host: host.to_owned(),
    };
    let mut stream = client
        .watch_patterns(request)
        .await
        .context("watching patterns")?
        .into_inner();
    if let Some(followed) = followed.take() {
        // Nobody waits for it any more when the agent is stopping.
        let _ = followed.send(());
    }
    ledger.start_stream();
    let mut updates = 0;
    // An error after the first update is a controller that died: the same as its end.
    while let Ok(Some(update)) = stream.message().await {
        updates += 1;
        let brings_news = !(update.patterns.is_empty() && update.withdrawn.is_empty());
        // A renewal brings nothing that the controller does not know we have.
        if apply(host, kernel, ledger, &update) && brings_news {
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

/// Whether the kernel took all of `update`, or has something newer.
fn apply(host: &str, kernel: &mut Weft, ledger: &mut Ledger, update: &PatternUpdate) -> bool {
    let mut taken = true;
    for prefix in update.withdrawn.iter().filter_map(prefix) {
        ledger.withdraw(prefix);
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
        if let Some(pattern) = kernel_pattern(pattern) {
            patterns.push(pattern);
        } else {
            let version = pattern.version;
            warn!(
                host,
                version, "a pattern is not of the shape that the kernel takes"
            );
            taken = false;
        }
    }
    for pattern in ledger.bring(now_ns(), patterns, update.renew) {
        if let Err(error) = kernel.set(&pattern) {
            warn!(host, pattern.version, "setting a pattern: {error}");
            taken = false;
        }
    }
    taken
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
fn now_ns() -> u64 {
    // Linux has this clock, and it counts from boot: never negative.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

/// `pattern` in the kernel's terms; `None` if a number does not fit them.
fn kernel_pattern(pattern: &HostPattern) -> Option<Pattern> {
    let path = |path: &weft_proto::v1::LocalPath| LocalPath {
        local: Ipv4Addr::from(path.local_address),
        gap: path.gap,
        rtt_ns: path.rtt_ns,
    };
    Some(Pattern {
        prefix: prefix(pattern.destination.as_ref()?)?,
        version: pattern.version,
        time_to_live_ns: pattern.time_to_live_ns,
        age_ns: 0,
        paths: pattern.paths.iter().map(path).collect(),
        sequence: pattern
            .sequence
            .iter()
            .map(|index| u8::try_from(*index).ok())
            .collect::<Option<_>>()?,
    })
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

    fn update() -> HostPattern {
        HostPattern {
            destination: Some(weft_proto::v1::Prefix {
                address: 0x0a02_0100,
                length: 24,
            }),
            version: 3,
            time_to_live_ns: 1_000,
            paths: vec![weft_proto::v1::LocalPath {
                local_address: 0x0a01_0101,
                gap: 1,
                rtt_ns: 9,
            }],
            sequence: vec![0],
        }
    }

    #[test]
    fn addresses_are_read_in_host_byte_order() {
        let pattern = kernel_pattern(&update()).unwrap();
        assert_eq!(pattern.prefix.to_string(), "10.2.1.0/24");
        assert_eq!(pattern.paths[0].local, Ipv4Addr::new(10, 1, 1, 1));
    }

    #[test]
    fn a_sequence_that_no_kernel_takes_is_refused() {
        assert!(
            kernel_pattern(&HostPattern {
                sequence: vec![256],
                ..update()
            })
            .is_none()
        );
        assert!(
            kernel_pattern(&HostPattern {
                destination: None,
                ..update()
            })
            .is_none()
        );
    }
}
