//! The stream of one host: from the controller into its kernel.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::oneshot;
use tonic::transport::Channel;
use tracing::{debug, info, warn};
use weft_proto::v1::weft_client::WeftClient;
use weft_proto::v1::{AckPatternsRequest, HostPattern, PatternUpdate, WatchPatternsRequest};

use crate::weft::{LocalPath, Pattern, Prefix, Weft};

/// Waits between two tries to reach the controller: the first, and the longest.
const RETRY: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// Follows the controller's patterns for `host` for ever. A controller that
/// goes away is waited for; meanwhile the kernel's patterns live out their time
/// to live, so nothing is withdrawn here. `followed` hears of the first stream.
pub async fn follow(
    host: &str,
    mut kernel: Weft,
    controller: Channel,
    followed: oneshot::Sender<()>,
) {
    let mut client = WeftClient::new(controller);
    let mut followed = Some(followed);
    let mut wait = RETRY;
    loop {
        match watch(host, &mut kernel, &mut client, &mut followed).await {
            Ok(updates) => {
                info!(host, updates, "the controller ended the stream");
                wait = RETRY;
            }
            Err(error) => debug!(host, "{error:#}"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
}

/// One stream to its end; gives the number of its updates.
async fn watch(
    host: &str,
    kernel: &mut Weft,
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
    let mut updates = 0;
    let mut acknowledged = BTreeMap::new();
    // An error after the first update is a controller that died: the same as its end.
    while let Ok(Some(update)) = stream.message().await {
        updates += 1;
        // A refresh brings nothing that the controller does not know we have.
        if apply(host, kernel, &update) && note_versions(&mut acknowledged, &update) {
            let ack = AckPatternsRequest {
                host: host.to_owned(),
                update: update.update,
            };
            client
                .ack_patterns(ack)
                .await
                .context("acknowledging patterns")?;
        }
    }
    Ok(updates)
}

/// Notes the versions in `update`; whether there is a new one among them.
fn note_versions(known: &mut BTreeMap<Prefix, u64>, update: &PatternUpdate) -> bool {
    for withdrawn in update.withdrawn.iter().filter_map(prefix) {
        known.remove(&withdrawn);
    }
    let mut is_new = !update.withdrawn.is_empty();
    for pattern in &update.patterns {
        if let Some(prefix) = pattern.destination.as_ref().and_then(prefix) {
            is_new |= known.insert(prefix, pattern.version) != Some(pattern.version);
        }
    }
    is_new
}

/// Whether the kernel took all of `update`.
fn apply(host: &str, kernel: &mut Weft, update: &PatternUpdate) -> bool {
    let mut taken = true;
    for withdrawn in &update.withdrawn {
        let Some(prefix) = prefix(withdrawn) else {
            continue;
        };
        match kernel.delete(prefix) {
            Err(error) if !error.is(nix::errno::Errno::ENOENT) => {
                warn!(host, %prefix, "withdrawing a pattern: {error}");
                taken = false;
            }
            _ => {}
        }
    }
    for pattern in &update.patterns {
        let result = match kernel_pattern(pattern) {
            Some(pattern) => kernel.set(&pattern).map_err(|error| error.to_string()),
            None => Err("not of the shape that the kernel takes".to_owned()),
        };
        if let Err(error) = result {
            warn!(
                host,
                version = pattern.version,
                "setting a pattern: {error}"
            );
            taken = false;
        }
    }
    taken
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
    fn a_refresh_needs_no_acknowledgement() {
        let mut known = BTreeMap::new();
        let first = PatternUpdate {
            patterns: vec![update()],
            ..PatternUpdate::default()
        };
        assert!(note_versions(&mut known, &first));
        assert!(!note_versions(&mut known, &first));
        let mut next = first.clone();
        next.patterns[0].version += 1;
        assert!(note_versions(&mut known, &next));
        let gone = PatternUpdate {
            withdrawn: next.patterns[0].destination.into_iter().collect(),
            ..PatternUpdate::default()
        };
        assert!(note_versions(&mut known, &gone));
        assert!(note_versions(&mut known, &next));
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
