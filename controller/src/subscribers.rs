// SPDX-License-Identifier: Apache-2.0

//! The agents that subscribe to patterns: what each was sent, and what its kernel applied.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tonic::Status;
use weft_proto::v1::PatternUpdate;

use crate::fabric::LeafPair;

/// Updates that may wait for a slow agent. Beyond that its stream ends; the agent reconnects
/// and gets the whole state.
const BACKLOG_UPDATES: usize = 64;

/// Updates that are kept until they are acknowledged.
const UNACKNOWLEDGED_UPDATES: usize = 256;

/// What has versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The pattern of a leaf pair.
    Pattern(LeafPair),
    /// The thresholds between classes.
    Thresholds,
}

/// Versions of patterns and thresholds.
pub type Versions = BTreeMap<What, u64>;

/// The receiving end of an agent's stream.
pub type Updates = mpsc::Receiver<Result<PatternUpdate, Status>>;

/// State of one host's agents.
#[derive(Debug, Default)]
struct Subscriber {
    streams: Vec<mpsc::Sender<Result<PatternUpdate, Status>>>,
    sent: VecDeque<(u64, Arc<Versions>)>,
    acknowledged: Versions,
}

impl Subscriber {
    fn is_connected(&self) -> bool {
        self.streams.iter().any(|stream| !stream.is_closed())
    }
}

/// All hosts that agents have subscribed for.
#[derive(Debug, Default)]
pub struct Subscribers {
    hosts: BTreeMap<String, Subscriber>,
    last_update: u64,
}

impl Subscribers {
    /// Opens a stream for `host`. If it had none, its acknowledgements are forgotten: the
    /// patterns in its kernel may have expired.
    pub fn subscribe(&mut self, host: &str) -> Updates {
        let (sender, receiver) = mpsc::channel(BACKLOG_UPDATES);
        let subscriber = self.hosts.entry(host.to_owned()).or_default();
        if !subscriber.is_connected() {
            *subscriber = Subscriber::default();
        }
        subscriber.streams.push(sender);
        receiver
    }

    /// Ends all streams.
    pub fn close_streams(&mut self) {
        for subscriber in self.hosts.values_mut() {
            subscriber.streams.clear();
        }
    }

    /// Hosts with an open stream.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let living = self
            .hosts
            .iter()
            .filter(|(_, subscriber)| subscriber.is_connected());
        living.map(|(host, _)| host.clone()).collect()
    }

    /// Whether no host has an open stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.hosts.values().any(Subscriber::is_connected)
    }

    /// Numbers `update` and sends it to `host`, if the host has a stream. `versions` lists what
    /// is in it.
    pub fn send(&mut self, host: &str, mut update: PatternUpdate, versions: Arc<Versions>) {
        let Some(subscriber) = self.hosts.get_mut(host) else {
            return;
        };
        subscriber.streams.retain(|stream| !stream.is_closed());
        if subscriber.streams.is_empty() {
            return;
        }
        self.last_update += 1;
        update.update = self.last_update;
        subscriber
            .streams
            .retain(|stream| stream.try_send(Ok(update.clone())).is_ok());
        if versions.is_empty() {
            return;
        }
        if subscriber.sent.len() >= UNACKNOWLEDGED_UPDATES {
            subscriber.sent.pop_front();
        }
        subscriber.sent.push_back((self.last_update, versions));
    }

    /// Records that the kernel of `host` has applied everything up to `update`. Returns the
    /// versions that are new to it.
    pub fn acknowledge(&mut self, host: &str, update: u64) -> Versions {
        let mut taken = Versions::new();
        let Some(subscriber) = self.hosts.get_mut(host) else {
            return taken;
        };
        while let Some((sent, _)) = subscriber.sent.front() {
            if *sent > update {
                break;
            }
            if let Some((_, versions)) = subscriber.sent.pop_front() {
                taken.extend(versions.iter());
            }
        }
        taken.retain(|what, version| subscriber.acknowledged.get(what) != Some(version));
        subscriber.acknowledged.extend(&taken);
        taken
    }

    /// Hosts whose kernels use this version. Hosts without an agent are left out: nobody renews
    /// what they have, so it expires.
    #[must_use]
    pub fn acknowledged_by(&self, what: What, version: u64) -> Vec<String> {
        self.hosts
            .iter()
            .filter(|(_, subscriber)| subscriber.is_connected())
            .filter(|(_, subscriber)| subscriber.acknowledged.get(&what) == Some(&version))
            .map(|(host, _)| host.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHAT: What = What::Pattern(LeafPair {
        source: 1,
        destination: 2,
    });

    fn versions(version: u64) -> Arc<Versions> {
        Arc::new(Versions::from([(WHAT, version)]))
    }

    #[test]
    fn only_the_acknowledged_version_counts() {
        let mut subscribers = Subscribers::default();
        let _stream = subscribers.subscribe("h1_1");
        subscribers.send("h1_1", PatternUpdate::default(), versions(7));
        subscribers.send("h1_1", PatternUpdate::default(), versions(8));
        assert!(subscribers.acknowledged_by(WHAT, 7).is_empty());
        subscribers.acknowledge("h1_1", 1);
        assert_eq!(subscribers.acknowledged_by(WHAT, 7), ["h1_1"]);
        assert!(subscribers.acknowledged_by(WHAT, 8).is_empty());
        subscribers.acknowledge("h1_1", 2);
        assert_eq!(subscribers.acknowledged_by(WHAT, 8), ["h1_1"]);
    }

    #[test]
    fn an_agent_that_does_not_read_loses_its_stream_not_the_controllers_memory() {
        let mut subscribers = Subscribers::default();
        let mut stream = subscribers.subscribe("h1_1");
        for _ in 0..1000 {
            subscribers.send("h1_1", PatternUpdate::default(), versions(1));
        }
        assert!(subscribers.hosts().is_empty());
        let mut read = 0;
        while stream.try_recv().is_ok() {
            read += 1;
        }
        assert_eq!(read, BACKLOG_UPDATES);
        assert!(subscribers.hosts["h1_1"].sent.len() <= UNACKNOWLEDGED_UPDATES);
    }

    #[test]
    fn a_host_without_an_agent_uses_no_pattern_nor_does_a_new_one_until_it_says_so() {
        let mut subscribers = Subscribers::default();
        let stream = subscribers.subscribe("h1_1");
        subscribers.send("h1_1", PatternUpdate::default(), versions(7));
        subscribers.send("h1_1", PatternUpdate::default(), versions(8));
        subscribers.acknowledge("h1_1", 1);
        drop(stream);
        assert!(subscribers.acknowledged_by(WHAT, 7).is_empty());
        let _stream = subscribers.subscribe("h1_1");
        subscribers.send("h1_1", PatternUpdate::default(), versions(7));
        assert!(subscribers.acknowledged_by(WHAT, 7).is_empty());
        assert_eq!(*versions(7), subscribers.acknowledge("h1_1", 3));
        assert_eq!(subscribers.acknowledged_by(WHAT, 7), ["h1_1"]);
        subscribers.close_streams();
        assert!(subscribers.acknowledged_by(WHAT, 7).is_empty());
    }

    #[test]
    fn a_second_agent_of_a_host_does_not_undo_what_the_first_has_said() {
        let mut subscribers = Subscribers::default();
        let first = subscribers.subscribe("h1_1");
        subscribers.send("h1_1", PatternUpdate::default(), versions(7));
        subscribers.acknowledge("h1_1", 1);
        let _second = subscribers.subscribe("h1_1");
        drop(first);
        assert_eq!(subscribers.acknowledged_by(WHAT, 7), ["h1_1"]);
    }

    #[test]
    fn renewals_push_no_unacknowledged_update_out() {
        let mut subscribers = Subscribers::default();
        let mut stream = subscribers.subscribe("h1_1");
        let mut send = |versions: Arc<Versions>| {
            subscribers.send("h1_1", PatternUpdate::default(), versions);
            assert!(stream.try_recv().is_ok());
        };
        for version in 1..=UNACKNOWLEDGED_UPDATES as u64 {
            send(versions(version));
        }
        for _ in 0..UNACKNOWLEDGED_UPDATES {
            send(Arc::default());
        }
        assert_eq!(*versions(1), subscribers.acknowledge("h1_1", 1));
    }

    #[test]
    fn acknowledgements_of_strangers_are_ignored() {
        let mut subscribers = Subscribers::default();
        subscribers.acknowledge("nobody", u64::MAX);
        assert!(subscribers.hosts().is_empty());
    }
}
