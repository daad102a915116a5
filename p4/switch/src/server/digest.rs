// SPDX-License-Identifier: Apache-2.0

//! Digests on their way to the controller. They are gathered into lists, and a message is not
//! repeated until the controller has acknowledged it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_p4runtime::p4::v1::digest_entry::Config;
use weft_p4runtime::p4::v1::{DigestEntry, DigestList, P4Data, P4StructLike, p4_data};

/// One message: a value for each member of the digest's struct.
type Message = Vec<Vec<u8>>;

/// The maximum length of a list, also if the controller sets no limit.
const MAX_LIST_MESSAGES: usize = 1024;
/// Maximum number of unacknowledged messages to remember. Beyond it, the oldest list is forgotten,
/// and its messages may be sent again.
const MAX_REMEMBERED_MESSAGES: usize = 65_536;

/// The digests of a switch that the controller has asked for.
#[derive(Debug, Default)]
pub(super) struct Digests {
    /// By P4Info id.
    entries: BTreeMap<u32, Entry>,
}

/// A digest that the controller wants.
#[derive(Debug)]
struct Entry {
    config: Config,
    last_list_id: u64,
    pending: Vec<Message>,
    /// When the first of `pending` came.
    pending_since_ns: u64,
    /// What is pending or not acknowledged.
    remembered: BTreeSet<Message>,
    /// Lists sent and not acknowledged, oldest first.
    unacknowledged: VecDeque<SentList>,
}

#[derive(Debug)]
struct SentList {
    id: u64,
    forget_at_ns: u64,
    messages: Vec<Message>,
}

impl Digests {
    /// Configures a digest, or changes its parameters. Returns whether it is new.
    pub fn configure(&mut self, id: u32, config: Config) -> bool {
        match self.entries.get_mut(&id) {
            Some(entry) => {
                entry.config = config;
                false
            }
            None => {
                self.entries.insert(id, Entry::new(config));
                true
            }
        }
    }

    /// Removes a digest. Returns whether it was there.
    pub fn remove(&mut self, id: u32) -> bool {
        self.entries.remove(&id).is_some()
    }

    pub fn contains(&self, id: u32) -> bool {
        self.entries.contains_key(&id)
    }

    /// The entries, as they are read back.
    pub fn entries(&self) -> impl Iterator<Item = DigestEntry> {
        self.entries.iter().map(|(id, entry)| DigestEntry {
            digest_id: *id,
            config: Some(entry.config),
        })
    }

    /// Takes a message. Returns the list that it completes, if any.
    pub fn add(&mut self, id: u32, message: Message, now_ns: u64) -> Option<DigestList> {
        let entry = self.entries.get_mut(&id)?;
        if !entry.remember(&message, now_ns) {
            return None;
        }
        if entry.pending.is_empty() {
            entry.pending_since_ns = now_ns;
        }
        entry.pending.push(message);
        let full = entry.pending.len() >= entry.list_messages();
        (full || entry.config.max_timeout_ns <= 0).then(|| entry.send(id, now_ns))
    }

    /// When the first incomplete list must leave, in nanoseconds.
    pub fn deadline_ns(&self) -> Option<u64> {
        let pending = self.entries.values().filter(|e| !e.pending.is_empty());
        pending.map(Entry::deadline_ns).min()
    }

    /// The lists that are due at `now_ns`, by deadline.
    pub fn due(&mut self, now_ns: u64) -> Vec<DigestList> {
        let mut due: Vec<(u64, u32)> = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.pending.is_empty())
            .map(|(id, entry)| (entry.deadline_ns(), *id))
            .filter(|(deadline_ns, _)| *deadline_ns <= now_ns)
            .collect();
        due.sort_unstable();
        due.iter()
            .filter_map(|(deadline_ns, id)| {
                let entry = self.entries.get_mut(id)?;
                Some(entry.send(*id, *deadline_ns))
            })
            .collect()
    }

    /// Handles the acknowledgement of a list.
    pub fn acknowledge(&mut self, id: u32, list_id: u64) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let mut lists = entry.unacknowledged.iter();
        if let Some(place) = lists.position(|list| list.id == list_id) {
            entry.forget(place);
        }
    }
}

impl Entry {
    fn new(config: Config) -> Self {
        Self {
            config,
            last_list_id: 0,
            pending: Vec::new(),
            pending_since_ns: 0,
            remembered: BTreeSet::new(),
            unacknowledged: VecDeque::new(),
        }
    }

    fn list_messages(&self) -> usize {
        match usize::try_from(self.config.max_list_size) {
            Ok(0) | Err(_) => MAX_LIST_MESSAGES,
            Ok(limit) => limit.min(MAX_LIST_MESSAGES),
        }
    }

    fn deadline_ns(&self) -> u64 {
        let timeout_ns = u64::try_from(self.config.max_timeout_ns).unwrap_or(0);
        self.pending_since_ns.saturating_add(timeout_ns)
    }

    /// Whether `message` is new. Without an ack timeout every message is.
    fn remember(&mut self, message: &Message, now_ns: u64) -> bool {
        if self.config.ack_timeout_ns <= 0 {
            return true;
        }
        while let Some(list) = self.unacknowledged.front() {
            let too_many = self.remembered.len() >= MAX_REMEMBERED_MESSAGES;
            if list.forget_at_ns > now_ns && !too_many {
                break;
            }
            self.forget(0);
        }
        self.remembered.insert(message.clone())
    }

    fn forget(&mut self, place: usize) {
        for message in self
            .unacknowledged
            .remove(place)
            .map(|list| list.messages)
            .unwrap_or_default()
        {
            self.remembered.remove(&message);
        }
    }

    fn send(&mut self, id: u32, now_ns: u64) -> DigestList {
        self.last_list_id += 1;
        let messages = std::mem::take(&mut self.pending);
        let data = messages.iter().map(to_data).collect();
        if let Ok(timeout_ns @ 1..) = u64::try_from(self.config.ack_timeout_ns) {
            self.unacknowledged.push_back(SentList {
                id: self.last_list_id,
                forget_at_ns: now_ns.saturating_add(timeout_ns),
                messages,
            });
        }
        DigestList {
            digest_id: id,
            list_id: self.last_list_id,
            data,
            timestamp: i64::try_from(now_ns).unwrap_or(i64::MAX),
        }
    }
}

/// A struct of bitstrings, one for each member.
fn to_data(message: &Message) -> P4Data {
    let bits = |value: &Vec<u8>| P4Data {
        data: Some(p4_data::Data::Bitstring(value.clone())),
    };
    P4Data {
        data: Some(p4_data::Data::Struct(P4StructLike {
            members: message.iter().map(bits).collect(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u32 = 7;
    const ACK_NS: i64 = 1_000;

    fn digests(max_timeout_ns: i64, max_list_size: i32, ack_timeout_ns: i64) -> Digests {
        let mut digests = Digests::default();
        let config = Config {
            max_timeout_ns,
            max_list_size,
            ack_timeout_ns,
        };
        assert!(digests.configure(ID, config));
        digests
    }

    fn message(value: u8) -> Message {
        vec![vec![value]]
    }

    #[test]
    fn a_list_leaves_when_it_is_full() {
        let mut digests = digests(100, 2, 0);
        assert!(digests.add(ID, message(1), 10).is_none());
        let list = digests.add(ID, message(2), 20).unwrap();
        assert_eq!((list.list_id, list.data.len(), list.timestamp), (1, 2, 20));
        assert_eq!(digests.deadline_ns(), None);
    }

    #[test]
    fn a_list_leaves_when_its_first_message_is_old_enough() {
        let mut digests = digests(100, 10, 0);
        assert!(digests.add(ID, message(1), 10).is_none());
        assert!(digests.add(ID, message(2), 50).is_none());
        assert_eq!(digests.deadline_ns(), Some(110));
        assert!(digests.due(109).is_empty());
        let lists = digests.due(500);
        assert_eq!((lists[0].data.len(), lists[0].timestamp), (2, 110));
    }

    #[test]
    fn without_a_timeout_each_message_is_a_list() {
        let mut digests = digests(0, 0, 0);
        for list_id in 1..4 {
            let list = digests.add(ID, message(1), 10).unwrap();
            assert_eq!((list.list_id, list.data.len()), (list_id, 1));
        }
    }

    #[test]
    fn the_same_message_waits_for_the_acknowledgement() {
        let mut digests = digests(0, 0, ACK_NS);
        let list = digests.add(ID, message(1), 0).unwrap();
        assert!(digests.add(ID, message(1), 1).is_none());
        assert!(digests.add(ID, message(2), 2).is_some());
        digests.acknowledge(ID, list.list_id);
        assert!(digests.add(ID, message(1), 3).is_some());
        assert!(digests.add(ID, message(2), 4).is_none());
    }

    #[test]
    fn the_same_message_comes_again_when_the_acknowledgement_does_not() {
        let mut digests = digests(0, 0, ACK_NS);
        assert!(digests.add(ID, message(1), 0).is_some());
        assert!(digests.add(ID, message(1), 999).is_none());
        assert!(digests.add(ID, message(1), 1_000).is_some());
    }

    #[test]
    fn a_controller_that_never_acknowledges_fills_no_memory() {
        let mut digests = digests(0, 0, i64::MAX);
        for value in 0..2 * MAX_REMEMBERED_MESSAGES as u32 {
            let message = vec![value.to_be_bytes().to_vec()];
            assert!(digests.add(ID, message, 0).is_some());
        }
        let entry = &digests.entries[&ID];
        assert!(entry.remembered.len() <= MAX_REMEMBERED_MESSAGES);
        assert!(entry.unacknowledged.len() <= MAX_REMEMBERED_MESSAGES);
    }

    #[test]
    fn nobody_asked_nobody_told() {
        assert!(Digests::default().add(ID, message(1), 0).is_none());
    }
}
