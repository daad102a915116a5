// SPDX-License-Identifier: Apache-2.0

//! The network and the control planes of its switches, without I/O.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_topology::Topology;

use super::device::Device;
use crate::network::{
    BuildError, ControlContent, ControlMessage, Delivery, Network, TimestampUnit,
};

/// A digest as it left the pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRecord {
    /// When.
    pub at_ns: u64,
    /// The switch, by its place in the network.
    pub switch: usize,
    /// Name of its struct.
    pub digest: String,
    /// Members in order, big-endian.
    pub fields: Vec<Vec<u8>>,
}

/// A network and the control planes of its switches.
#[derive(Debug)]
pub struct World {
    /// The data plane.
    pub network: Network,
    /// One for each switch, in the order of the network.
    pub(super) devices: Vec<Device>,
    /// Frames from controllers, and their switches.
    pub(super) packets_out: Vec<(usize, Vec<u8>)>,
    control_messages: Vec<ControlMessage>,
    /// Digests since the last call of [`World::take_digest_records`]; `None` while they are not
    /// recorded.
    recorded: Option<Vec<DigestRecord>>,
    /// Seeds the random numbers of the pipelines.
    pub(super) seed: u64,
}

impl World {
    /// Builds the world of `topology` at `epoch_ns`; see [`Network::new`].
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn new(
        topology: &Topology,
        unit: TimestampUnit,
        epoch_ns: u64,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let devices = topology.devices();
        Ok(Self {
            network: Network::new(topology, unit, epoch_ns, seed)?,
            devices: devices
                .map(|device| Device::new(device.name.to_owned(), device.device_id))
                .collect(),
            packets_out: Vec::new(),
            control_messages: Vec::new(),
            recorded: None,
            seed,
        })
    }

    /// Runs the network up to `end_ns`, and passes messages on to controllers. Packets from
    /// controllers enter at `now_ns`, the present. Appends frames for hosts to `deliveries`.
    pub fn advance(&mut self, now_ns: u64, end_ns: u64, deliveries: &mut Vec<Delivery>) {
        for (switch, frame) in self.packets_out.drain(..) {
            self.network.packet_out(switch, now_ns, frame);
        }
        self.network.run(end_ns);
        self.network.take_deliveries(deliveries);
        self.network
            .take_control_messages(&mut self.control_messages);
        if let Some(recorded) = &mut self.recorded {
            let network = &self.network;
            recorded.extend(
                self.control_messages
                    .iter()
                    .filter_map(|message| digest_record(network, message)),
            );
        }
        for message in self.control_messages.drain(..) {
            if let Some(device) = self.devices.get_mut(message.switch) {
                device.handle(message);
            }
        }
        // A list that is due at the end may still get a message from the same nanosecond.
        for device in &mut self.devices {
            device.send_due_digests(end_ns.saturating_sub(1));
        }
    }

    /// When a digest list has waited long enough, in nanoseconds.
    #[must_use]
    pub fn digests_due_ns(&self) -> Option<u64> {
        let lists = self.devices.iter().filter_map(Device::digests_due_ns);
        lists.min()
    }

    /// Records digests from now on, for [`World::take_digest_records`].
    pub fn record_digests(&mut self) {
        self.recorded.get_or_insert_default();
    }

    /// The digests since the last call, by time.
    pub fn take_digest_records(&mut self) -> impl Iterator<Item = DigestRecord> + '_ {
        self.recorded
            .iter_mut()
            .flat_map(|records| records.drain(..))
    }
}

/// The digest in a message; `None` if there is none.
fn digest_record(network: &Network, message: &ControlMessage) -> Option<DigestRecord> {
    let ControlContent::Digest(digest) = &message.content else {
        return None;
    };
    let program = network.pipeline(message.switch)?.program();
    Some(DigestRecord {
        at_ns: message.at_ns,
        switch: message.switch,
        digest: program.digests().get(digest.digest)?.name.clone(),
        fields: digest.fields.clone(),
    })
}

/// A [`World`] that data plane and servers share.
#[derive(Clone)]
pub struct Shared {
    world: Arc<Mutex<World>>,
    /// Called after a controller changed the world.
    pub(super) wake: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Shared").field(&self.world).finish()
    }
}

impl Shared {
    /// Shares `world`. `wake` is called from any thread when a controller has work for a sleeping
    /// data plane.
    #[must_use]
    pub fn new(world: World, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            world: Arc::new(Mutex::new(world)),
            wake: Arc::new(wake),
        }
    }

    /// Locks the world.
    pub fn lock(&self) -> MutexGuard<'_, World> {
        // A thread that panics ends the process. Until then the world can be used.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
