//! The agents that follow patterns: what each was sent, and what its kernel took.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tonic::Status;
use weft_proto::v1::PatternUpdate;

use crate::fabric::LeafPair;

/// Updates that may wait for a slow agent; then its stream ends, and it comes
/// back for the whole state.
const BACKLOG_UPDATES: usize = 64;

/// Updates that are remembered until they are acknowledged.
const UNACKNOWLEDGED_UPDATES: usize = 256;

/// Versions of leaf pairs' patterns.
pub type Versions = BTreeMap<LeafPair, u64>;

/// The receiving end of a stream.
pub type Updates = mpsc::Receiver<Result<PatternUpdate, Status>>;

/// One host's side.
#[derive(Debug, Default)]
struct Follower {
    streams: Vec<mpsc::Sender<Result<PatternUpdate, Status>>>,
    sent: VecDeque<(u64, Arc<Versions>)>,
    acknowledged: Versions,
}

impl Follower {
    fn lives(&self) -> bool {
        self.streams.iter().any(|stream| !stream.is_closed())
    }
}

/// All hosts that agents have asked for.
#[derive(Debug, Default)]
pub struct Followers {
    hosts: BTreeMap<String, Follower>,
    last_update: u64,
}

impl Followers {
    /// Opens a stream for `host`. What its kernel had taken while there was none before
    /// may have outlived its time.
    pub fn follow(&mut self, host: &str) -> Updates {
        let (sender, receiver) = mpsc::channel(BACKLOG_UPDATES);
        let follower = self.hosts.entry(host.to_owned()).or_default();
        if !follower.lives() {
            *follower = Follower::default();
        }
        follower.streams.push(sender);
        receiver
    }

    /// Ends every stream.
    pub fn leave(&mut self) {
        for follower in self.hosts.values_mut() {
            follower.streams.clear();
        }
    }

    /// Hosts with a living stream.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let living = self.hosts.iter().filter(|(_, follower)| follower.lives());
        living.map(|(host, _)| host.clone()).collect()
    }

    /// Whether no host has a living stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.hosts.values().any(Follower::lives)
    }

    /// Sends `update` to `host`, if it has a stream, and numbers it; `versions` is what it
    /// carries.
    pub fn send(&mut self, host: &str, mut update: PatternUpdate, versions: Arc<Versions>) {
        let Some(follower) = self.hosts.get_mut(host) else {
            return;
        };
        follower.streams.retain(|stream| !stream.is_closed());
        if follower.streams.is_empty() {
            return;
        }
        self.last_update += 1;
        update.update = self.last_update;
        follower
            .streams
            .retain(|stream| stream.try_send(Ok(update.clone())).is_ok());
        if versions.is_empty() {
            return;
        }
        if follower.sent.len() >= UNACKNOWLEDGED_UPDATES {
            follower.sent.pop_front();
        }
        follower.sent.push_back((self.last_update, versions));
    }

    /// Notes that the kernel of `host` has taken everything up to `update`; gives
    /// the versions that it did not have before.
    pub fn acknowledge(&mut self, host: &str, update: u64) -> Versions {
        let mut taken = Versions::new();
        let Some(follower) = self.hosts.get_mut(host) else {
            return taken;
        };
        while let Some((sent, _)) = follower.sent.front() {
            if *sent > update {
                break;
            }
            if let Some((_, versions)) = follower.sent.pop_front() {
                taken.extend(versions.iter());
            }
        }
        taken.retain(|pair, version| follower.acknowledged.get(pair) != Some(version));
        follower.acknowledged.extend(&taken);
        taken
    }

    /// Hosts whose kernel runs `version` of the pattern of `pair`. Without an agent to renew
    /// it a kernel drops it.
    #[must_use]
    pub fn acknowledged_by(&self, pair: LeafPair, version: u64) -> Vec<String> {
        self.hosts
            .iter()
            .filter(|(_, follower)| follower.lives())
            .filter(|(_, follower)| follower.acknowledged.get(&pair) == Some(&version))
            .map(|(host, _)| host.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: LeafPair = LeafPair {
        source: 1,
        destination: 2,
    };

    fn versions(version: u64) -> Arc<Versions> {
        Arc::new(Versions::from([(PAIR, version)]))
    }

    #[test]
    fn only_the_acknowledged_version_counts() {
        let mut followers = Followers::default();
        let _stream = followers.follow("h1_1");
        followers.send("h1_1", PatternUpdate::default(), versions(7));
        followers.send("h1_1", PatternUpdate::default(), versions(8));
        assert!(followers.acknowledged_by(PAIR, 7).is_empty());
        followers.acknowledge("h1_1", 1);
        assert_eq!(followers.acknowledged_by(PAIR, 7), ["h1_1"]);
        assert!(followers.acknowledged_by(PAIR, 8).is_empty());
        followers.acknowledge("h1_1", 2);
        assert_eq!(followers.acknowledged_by(PAIR, 8), ["h1_1"]);
    }

    #[test]
    fn an_agent_that_does_not_read_loses_its_stream_not_the_controllers_memory() {
        let mut followers = Followers::default();
        let mut stream = followers.follow("h1_1");
        for _ in 0..1000 {
            followers.send("h1_1", PatternUpdate::default(), versions(1));
        }
        assert!(followers.hosts().is_empty());
        let mut read = 0;
        while stream.try_recv().is_ok() {
            read += 1;
        }
        assert_eq!(read, BACKLOG_UPDATES);
        assert!(followers.hosts["h1_1"].sent.len() <= UNACKNOWLEDGED_UPDATES);
    }

    #[test]
    fn a_host_without_an_agent_uses_no_pattern_nor_does_a_new_one_until_it_says_so() {
        let mut followers = Followers::default();
        let stream = followers.follow("h1_1");
        followers.send("h1_1", PatternUpdate::default(), versions(7));
        followers.send("h1_1", PatternUpdate::default(), versions(8));
        followers.acknowledge("h1_1", 1);
        drop(stream);
        assert!(followers.acknowledged_by(PAIR, 7).is_empty());
        let _stream = followers.follow("h1_1");
        followers.send("h1_1", PatternUpdate::default(), versions(7));
        assert!(followers.acknowledged_by(PAIR, 7).is_empty());
        assert_eq!(*versions(7), followers.acknowledge("h1_1", 3));
        assert_eq!(followers.acknowledged_by(PAIR, 7), ["h1_1"]);
        followers.leave();
        assert!(followers.acknowledged_by(PAIR, 7).is_empty());
    }

    #[test]
    fn a_second_agent_of_a_host_does_not_undo_what_the_first_has_said() {
        let mut followers = Followers::default();
        let first = followers.follow("h1_1");
        followers.send("h1_1", PatternUpdate::default(), versions(7));
        followers.acknowledge("h1_1", 1);
        let _second = followers.follow("h1_1");
        drop(first);
        assert_eq!(followers.acknowledged_by(PAIR, 7), ["h1_1"]);
    }

    #[test]
    fn renewals_push_no_unacknowledged_update_out() {
        let mut followers = Followers::default();
        let mut stream = followers.follow("h1_1");
        let mut send = |versions: Arc<Versions>| {
            followers.send("h1_1", PatternUpdate::default(), versions);
            assert!(stream.try_recv().is_ok());
        };
        for version in 1..=UNACKNOWLEDGED_UPDATES as u64 {
            send(versions(version));
        }
        for _ in 0..UNACKNOWLEDGED_UPDATES {
            send(Arc::default());
        }
        assert_eq!(*versions(1), followers.acknowledge("h1_1", 1));
    }

    #[test]
    fn acknowledgements_of_strangers_are_ignored() {
        let mut followers = Followers::default();
        followers.acknowledge("nobody", u64::MAX);
        assert!(followers.hosts().is_empty());
    }
}
