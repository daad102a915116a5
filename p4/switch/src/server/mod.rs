//! P4Runtime: one server per switch, over the state of one fabric.
//!
//! [`World`] is the fabric and the control planes of its switches, without
//! I/O; whoever runs the data plane calls [`World::advance`]. [`serve`] gives
//! it a gRPC server per switch. Both share it by a mutex: the holder never
//! waits for anything, so that it costs nothing when nobody else wants it.

mod arbitration;
mod config;
mod device;
mod digest;
mod entity;
mod packet;
mod pipeline_config;
mod read;
mod schedule;
mod service;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_topology::Topology;

use crate::fabric::{
    Arrival, BuildError, Delivery, Fabric, Notice, NoticeContent, PortStats, TimestampUnit,
};

use device::Device;

pub use schedule::serve_schedule;
pub use service::{ServeError, serve};

/// A digest as it left the pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// When.
    pub at_ns: u64,
    /// The switch, by its place in the fabric.
    pub switch: usize,
    /// Name of its struct.
    pub digest: String,
    /// Members in order, big-endian.
    pub fields: Vec<Vec<u8>>,
}

/// A fabric and the control planes of its switches.
#[derive(Debug)]
pub struct World {
    fabric: Fabric,
    /// One for each switch, in the order of the fabric.
    devices: Vec<Device>,
    /// Frames from controllers, and their switches.
    packets_out: Vec<(usize, Vec<u8>)>,
    notices: Vec<Notice>,
    /// Digests since they were last taken; `None` when nobody takes them.
    told: Option<Vec<Told>>,
    /// Starts what the pipelines draw at random.
    seed: u64,
}

impl World {
    /// The world of `topology` at `epoch_ns`; see [`Fabric::new`].
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
            fabric: Fabric::new(topology, unit, epoch_ns, seed)?,
            devices: devices
                .map(|device| Device::new(device.name.to_owned(), device.device_id))
                .collect(),
            packets_out: Vec::new(),
            notices: Vec::new(),
            told: None,
            seed,
        })
    }

    /// The data plane, to read.
    #[must_use]
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Gives a switch a pipeline without a controller, for tests.
    #[cfg(test)]
    pub(crate) fn install(&mut self, switch: usize, pipeline: crate::pipeline::Pipeline) {
        self.fabric.install(switch, pipeline);
    }

    /// See [`Fabric::start_schedule`].
    pub fn start_schedule(&mut self, start_ns: u64) {
        self.fabric.start_schedule(start_ns);
    }

    /// Takes a frame that a host sent; see [`Fabric::receive`].
    pub fn receive(&mut self, host_port: usize, sent_ns: u64, frame: &[u8]) {
        self.fabric.receive(host_port, sent_ns, frame);
    }

    /// Lets everything before `end_ns` happen and tells controllers what
    /// concerns them. `now_ns` is the present, where packets from controllers
    /// join. What leaves to hosts is appended to `deliveries`.
    pub fn advance(&mut self, now_ns: u64, end_ns: u64, deliveries: &mut Vec<Delivery>) {
        for (switch, frame) in self.packets_out.drain(..) {
            self.fabric.packet_out(switch, now_ns, frame);
        }
        self.fabric.run(end_ns);
        self.fabric.take_deliveries(deliveries);
        self.fabric.take_notices(&mut self.notices);
        if let Some(told) = &mut self.told {
            let fabric = &self.fabric;
            told.extend(
                self.notices
                    .iter()
                    .filter_map(|notice| told_by(fabric, notice)),
            );
        }
        for notice in self.notices.drain(..) {
            if let Some(device) = self.devices.get_mut(notice.switch) {
                device.notice(notice);
            }
        }
        // A list that is due at the end may still get a message of that very moment.
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

    /// Takes back the buffer of a delivered frame.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        self.fabric.recycle(frame);
    }

    /// See [`Fabric::observe`].
    pub fn observe(&mut self, switch: usize, port: u16) {
        self.fabric.observe(switch, port);
    }

    /// See [`Fabric::take_arrivals`].
    pub fn take_arrivals(&mut self, report: impl FnMut(&Arrival)) {
        self.fabric.take_arrivals(report);
    }

    /// From here on [`World::take_told`] gives what switches tell their controllers.
    pub fn keep_told(&mut self) {
        self.told.get_or_insert_default();
    }

    /// The digests since the last call, by time.
    pub fn take_told(&mut self) -> impl Iterator<Item = Told> + '_ {
        self.told.iter_mut().flat_map(|told| told.drain(..))
    }

    /// See [`Fabric::take_changes`].
    pub fn take_changes(&mut self, report: impl FnMut(usize, u16, &PortStats)) {
        self.fabric.take_changes(report);
    }
}

/// The digest in a notice; `None` if there is none.
fn told_by(fabric: &Fabric, notice: &Notice) -> Option<Told> {
    let NoticeContent::Digest(digest) = &notice.content else {
        return None;
    };
    let program = fabric.pipeline(notice.switch)?.program();
    Some(Told {
        at_ns: notice.at_ns,
        switch: notice.switch,
        digest: program.digests().get(digest.digest)?.name.clone(),
        fields: digest.fields.clone(),
    })
}

/// A [`World`] that data plane and servers share.
#[derive(Clone)]
pub struct Shared {
    world: Arc<Mutex<World>>,
    /// Called after a controller gave the world something to do.
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Shared").field(&self.world).finish()
    }
}

impl Shared {
    /// Shares `world`. `wake` is called, from any thread, when a controller
    /// gave a sleeping data plane something to do.
    #[must_use]
    pub fn new(world: World, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            world: Arc::new(Mutex::new(world)),
            wake: Arc::new(wake),
        }
    }

    /// Locks the world.
    pub fn lock(&self) -> MutexGuard<'_, World> {
        // A holder that panicked ends the process; until then its world is as good as any.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
