// SPDX-License-Identifier: Apache-2.0

//! Who may write: arbitration between the clients of one switch.
//!
//! The rules are those of the P4Runtime specification, "Client Arbitration and Controller
//! Replication": the client with the highest election id that the switch has ever seen is primary.
//! When its stream breaks, there is no primary until a client comes with that id or a higher one.
//! So a controller that was restarted may use its old id again.

use std::collections::BTreeMap;

use tonic::{Code, Status};
use weft_p4runtime::google::rpc;
use weft_p4runtime::p4::v1::{MasterArbitrationUpdate, Uint128};

/// Names a stream for as long as the process lives.
pub(super) type StreamId = u64;

/// The clients of a switch. Only the default role exists.
#[derive(Debug)]
pub(super) struct Arbiter {
    device_id: u64,
    /// Live clients and their election ids. A client without one is a backup.
    clients: BTreeMap<StreamId, Option<u128>>,
    highest: Option<u128>,
    primary: Option<StreamId>,
}

/// The messages to send after a change, and to whom.
pub(super) type Notifications = Vec<(StreamId, MasterArbitrationUpdate)>;

impl Arbiter {
    pub fn new(device_id: u64) -> Self {
        Self {
            device_id,
            clients: BTreeMap::new(),
            highest: None,
            primary: None,
        }
    }

    /// The stream of the primary, if there is one.
    pub fn primary(&self) -> Option<StreamId> {
        self.primary
    }

    /// Takes an arbitration message; an error ends the stream.
    pub fn update(
        &mut self,
        stream: StreamId,
        message: &MasterArbitrationUpdate,
    ) -> Result<Notifications, Status> {
        let known = self.clients.contains_key(&stream);
        if message.device_id != self.device_id {
            let text = format!(
                "this is device {}, not {}",
                self.device_id, message.device_id
            );
            return Err(if known {
                Status::failed_precondition(text)
            } else {
                Status::not_found(text)
            });
        }
        if let Some(role) = &message.role {
            if !role.name.is_empty() || role.config.is_some() {
                let text = "roles are not implemented by weft-switch; leave `role` unset";
                return Err(Status::invalid_argument(text));
            }
        }
        let election = message.election_id.map(to_u128);
        let mut others = self.clients.iter().filter(|(id, _)| **id != stream);
        if election.is_some() && others.any(|(_, id)| *id == election) {
            let text = "another client has this election id";
            return Err(Status::invalid_argument(text));
        }
        self.clients.insert(stream, election);

        let before = self.primary;
        if election.is_some() && election >= self.highest {
            self.highest = election;
            self.primary = Some(stream);
        } else if before == Some(stream) {
            self.primary = None;
        }
        // All clients get a message when the primary changes or confirms itself; otherwise only the
        // client that sent the update does.
        Ok(if self.primary == before && before != Some(stream) {
            vec![(stream, self.notification(stream))]
        } else {
            self.notify_all()
        })
    }

    /// A stream broke.
    pub fn disconnect(&mut self, stream: StreamId) -> Notifications {
        self.clients.remove(&stream);
        if self.primary != Some(stream) {
            return Vec::new();
        }
        self.primary = None;
        self.notify_all()
    }

    /// Whether a request with these credentials comes from the primary.
    pub fn authorize(
        &self,
        device_id: u64,
        role: &str,
        election: Option<Uint128>,
    ) -> Result<(), Status> {
        self.check_device(device_id)?;
        if !role.is_empty() {
            let text = "roles are not implemented by weft-switch; leave `role` unset";
            return Err(Status::not_found(text));
        }
        let primary = self.primary.and_then(|stream| self.clients.get(&stream));
        match primary {
            Some(id) if id.is_some() && *id == election.map(to_u128) => Ok(()),
            _ => Err(Status::permission_denied("not the primary client")),
        }
    }

    /// Whether a request is for this device at all.
    pub fn check_device(&self, device_id: u64) -> Result<(), Status> {
        if device_id == self.device_id {
            return Ok(());
        }
        let text = format!("this is device {}, not {device_id}", self.device_id);
        Err(Status::not_found(text))
    }

    fn notify_all(&self) -> Notifications {
        self.clients
            .keys()
            .map(|stream| (*stream, self.notification(*stream)))
            .collect()
    }

    fn notification(&self, stream: StreamId) -> MasterArbitrationUpdate {
        let (code, message) = match self.primary {
            Some(primary) if primary == stream => (Code::Ok, "you are primary"),
            Some(_) => (Code::AlreadyExists, "you are backup"),
            None => (Code::NotFound, "you are backup, and there is no primary"),
        };
        MasterArbitrationUpdate {
            device_id: self.device_id,
            role: None,
            election_id: self.highest.map(from_u128),
            status: Some(rpc::Status {
                code: code as i32,
                message: message.to_owned(),
                details: Vec::new(),
            }),
        }
    }
}

fn to_u128(id: Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

fn from_u128(id: u128) -> Uint128 {
    Uint128 {
        high: (id >> 64) as u64,
        low: id as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u64 = 3;

    fn claim(election: u64) -> MasterArbitrationUpdate {
        MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: Some(from_u128(election.into())),
            ..Default::default()
        }
    }

    /// Streams and the codes they are told.
    fn codes(notifications: &Notifications) -> Vec<(StreamId, i32)> {
        notifications
            .iter()
            .map(|(stream, update)| (*stream, update.status.as_ref().unwrap().code))
            .collect()
    }

    const PRIMARY: i32 = Code::Ok as i32;
    const BACKUP: i32 = Code::AlreadyExists as i32;
    const VACANT: i32 = Code::NotFound as i32;

    fn may_write(arbiter: &Arbiter, election: u64) -> bool {
        let id = Some(from_u128(election.into()));
        arbiter.authorize(DEVICE, "", id).is_ok()
    }

    #[test]
    fn the_highest_election_id_is_primary() {
        let mut arbiter = Arbiter::new(DEVICE);
        assert_eq!(
            codes(&arbiter.update(1, &claim(5)).unwrap()),
            [(1, PRIMARY)]
        );
        assert_eq!(codes(&arbiter.update(2, &claim(4)).unwrap()), [(2, BACKUP)]);
        let told = arbiter.update(3, &claim(6)).unwrap();
        assert_eq!(codes(&told), [(1, BACKUP), (2, BACKUP), (3, PRIMARY)]);
        assert!(may_write(&arbiter, 6));
        assert!(!may_write(&arbiter, 5));
    }

    #[test]
    fn a_lost_primary_leaves_a_vacancy_that_its_id_or_a_higher_one_fills() {
        let mut arbiter = Arbiter::new(DEVICE);
        arbiter.update(1, &claim(5)).unwrap();
        arbiter.update(2, &claim(4)).unwrap();
        assert_eq!(codes(&arbiter.disconnect(1)), [(2, VACANT)]);
        assert!(!may_write(&arbiter, 5));
        assert_eq!(codes(&arbiter.update(2, &claim(4)).unwrap()), [(2, VACANT)]);
        let told = arbiter.update(3, &claim(5)).unwrap();
        assert_eq!(codes(&told), [(2, BACKUP), (3, PRIMARY)]);
        let told = arbiter.update(2, &claim(8)).unwrap();
        assert_eq!(codes(&told), [(2, PRIMARY), (3, BACKUP)]);
    }

    #[test]
    fn a_primary_that_lowers_its_id_steps_down() {
        let mut arbiter = Arbiter::new(DEVICE);
        arbiter.update(1, &claim(5)).unwrap();
        assert_eq!(codes(&arbiter.update(1, &claim(4)).unwrap()), [(1, VACANT)]);
        assert!(!may_write(&arbiter, 4));
    }

    #[test]
    fn without_an_election_id_one_can_only_watch() {
        let mut arbiter = Arbiter::new(DEVICE);
        let watch = MasterArbitrationUpdate {
            device_id: DEVICE,
            ..Default::default()
        };
        assert_eq!(codes(&arbiter.update(1, &watch).unwrap()), [(1, VACANT)]);
        assert!(arbiter.authorize(DEVICE, "", None).is_err());
    }

    #[test]
    fn a_role_that_the_switch_does_not_know_is_not_found() {
        let mut arbiter = Arbiter::new(DEVICE);
        arbiter.update(1, &claim(1)).unwrap();
        let error = arbiter.authorize(DEVICE, "routing", Some(from_u128(1)));
        assert_eq!(error.unwrap_err().code(), Code::NotFound);
    }

    #[test]
    fn wrong_claims_end_the_stream_with_the_code_of_the_specification() {
        let mut arbiter = Arbiter::new(DEVICE);
        let elsewhere = MasterArbitrationUpdate {
            device_id: 9,
            ..claim(1)
        };
        let error = arbiter.update(1, &elsewhere).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        arbiter.update(1, &claim(1)).unwrap();
        let error = arbiter.update(1, &elsewhere).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        let error = arbiter.update(2, &claim(1)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}
