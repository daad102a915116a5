// SPDX-License-Identifier: Apache-2.0

//! The hub: connects the engine with everything around it. Samples arrive from switch
//! sessions; patterns go to agents and into `patterns.csv`.

mod classes;
mod queries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, broadcast, mpsc};
use tracing::{debug, info, warn};
use weft_proto::v1;

use crate::clock::{Alarm, now_ns};
use crate::engine::{Engine, Fault, LinkEvent};
use crate::fabric::LeafPair;
use crate::liveness::Probe;
use crate::mastership::{Arbitration, Mastership};
use crate::p4::digest::Hop;
use crate::pattern::letters;
use crate::probe::{self, Outgoing};
use crate::record::{Applied, Recorder};
use crate::subscribers::{Subscribers, Updates, Versions, What};
use crate::telemetry::Sample;
use crate::view;

/// Telemetry events that may wait for a slow user; beyond that the oldest are dropped.
const TELEMETRY_BACKLOG: usize = 1024;

/// Renewals of patterns within one time to live.
const RENEWALS_PER_LIFE: u64 = 3;

/// Orders that may wait for a switch; more would be stale.
const ORDER_BACKLOG: usize = 64;

/// A switch clock that differs by more is not synchronized with ours.
const CLOCK_SKEW_MAX_NS: u64 = 1_000_000_000;

/// What a switch with a session is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Send a frame.
    Send(Outgoing),
    /// On a leaf: let every host send these shares of its link in class 0, 1, ...
    Limit(Arc<[f64]>),
    /// On a leaf: classify flows whose hosts claim no class by these thresholds of class 1, 2, ...
    Classify(Arc<[u64]>),
}

/// Why a host's subscription is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The topology has no such host.
    NoHost,
    /// Most switches have another primary or are unreachable. Another controller may have
    /// current measurements.
    Standby,
}

/// State that the controller's tasks share.
#[derive(Debug)]
pub struct Hub {
    state: Mutex<State>,
    telemetry: broadcast::Sender<v1::TelemetryEvent>,
    timer_moved: Notify,
    time_to_live_ns: u64,
    wait_unit_ns: u32,
    topology_json: String,
}

#[derive(Debug)]
struct State {
    engine: Engine,
    subscribers: Subscribers,
    /// Orders to each switch with a session.
    switches: BTreeMap<String, mpsc::Sender<Order>>,
    mastership: Mastership,
    recorder: Option<Recorder>,
    /// When the timer task wakes up next.
    armed_ns: u64,
    renewed_ns: u64,
}

impl Hub {
    /// A hub around `engine`. Patterns live for `time_to_live`, ACKs carry their queueing time
    /// in units of `wait_unit_ns`, new patterns go to `recorder`, and users get `topology_json`.
    #[must_use]
    pub fn new(
        engine: Engine,
        time_to_live: Duration,
        wait_unit_ns: u32,
        recorder: Option<Recorder>,
        topology_json: String,
    ) -> Self {
        let mastership = Mastership::new(engine.fabric().topology().devices().count());
        Self {
            state: Mutex::new(State {
                engine,
                subscribers: Subscribers::default(),
                switches: BTreeMap::new(),
                mastership,
                recorder,
                armed_ns: u64::MAX,
                renewed_ns: 0,
            }),
            telemetry: broadcast::channel(TELEMETRY_BACKLOG).0,
            timer_moved: Notify::new(),
            time_to_live_ns: u64::try_from(time_to_live.as_nanos()).unwrap_or(u64::MAX),
            wait_unit_ns,
            topology_json,
        }
    }

    /// The topology document.
    #[must_use]
    pub fn topology_json(&self) -> &str {
        &self.topology_json
    }

    /// Processes the samples that `switch` took no earlier than `sampled_ns` by its clock, and
    /// publishes the patterns that follow.
    pub fn record(&self, switch: &str, sampled_ns: u64, samples: &[Sample]) {
        let now_ns = now_ns();
        let sampled_ns = same_clock(now_ns, sampled_ns);
        let mut state = self.lock();
        for sample in samples {
            state.engine.record(now_ns, sampled_ns, switch, sample);
        }
        report(&mut state.engine);
        self.publish_changes(&mut state, now_ns);
        self.rearm(&state, now_ns);
        drop(state);
        if self.telemetry.receiver_count() > 0 {
            for sample in samples {
                // An error means that the last watcher has just disconnected.
                let _ = self
                    .telemetry
                    .send(view::telemetry_event(now_ns, switch, sample));
            }
        }
    }

    /// Processes in-band queue measurements like queue samples of the switches, see
    /// [`Hub::record`].
    pub fn record_hops(&self, sampled_ns: u64, hops: &[Hop]) {
        for hop in hops {
            let switch = {
                let state = self.lock();
                let mut switches = state.engine.fabric().topology().switches.iter();
                let known = switches.find(|switch| switch.device_id == hop.device_id);
                known.map(|switch| switch.name.clone())
            };
            match switch {
                Some(switch) => self.record(&switch, sampled_ns, &[Sample::Queue(hop.queue)]),
                None => warn!(hop.device_id, "in-band telemetry of an unknown switch"),
            }
        }
    }

    /// Registers a new receiver for the orders to `switch`, beginning with what holds now.
    pub fn open_orders(&self, switch: &str) -> mpsc::Receiver<Order> {
        let (sender, receiver) = mpsc::channel(ORDER_BACKLOG);
        let mut state = self.lock();
        for order in classes::orders(&state.engine, switch) {
            // A new channel has room.
            let _ = sender.try_send(order);
        }
        state.switches.insert(switch.to_owned(), sender);
        receiver
    }

    /// Processes a probe that arrived at `port` of `switch`, and publishes what follows. Probes
    /// that come from hosts are ignored.
    pub fn probed(&self, switch: &str, port: u16, probe: Probe) {
        self.take_probe(&mut self.lock(), now_ns(), (switch, port), probe);
    }

    fn take_probe(&self, state: &mut State, now_ns: u64, at: (&str, u16), probe: Probe) {
        let (switch, port) = at;
        let fabric = state.engine.fabric();
        let sender = fabric
            .port(switch, port)
            .and_then(|at| fabric.sender_to(at));
        if sender.is_none() {
            debug!(switch, port, ?probe, "ignored a probe that no switch sent");
            return;
        }
        state.engine.probed(now_ns, probe);
        self.publish_changes(state, now_ns);
        self.rearm(state, now_ns);
    }

    /// Records the result of an arbitration at `switch`. On standby all agents are disconnected,
    /// so that they subscribe to the primary.
    pub fn arbitrated(&self, switch: &str, outcome: Arbitration) {
        let mut state = self.lock();
        let was_standby = state.mastership.is_standby();
        state.mastership.record(switch, outcome);
        if state.mastership.is_standby() == was_standby {
            return;
        }
        state.engine.forget_silence();
        if was_standby {
            info!("primary: agents may subscribe");
            self.rearm(&state, now_ns());
            return;
        }
        if state.mastership.is_backup() {
            warn!("another controller is primary; disconnecting agents");
        } else {
            warn!("most switches are unreachable; disconnecting agents");
        }
        state.subscribers.close_streams();
    }

    /// Whether this controller is primary at half of the switches or more.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        self.lock().mastership.is_primary()
    }

    /// Whether another controller is primary at most switches.
    #[must_use]
    pub fn is_backup(&self) -> bool {
        self.lock().mastership.is_backup()
    }

    /// Whether this controller serves no hosts, because most switches have another primary or
    /// are unreachable.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        self.lock().mastership.is_standby()
    }

    /// Opens an agent's stream and sends it all current patterns.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn subscribe(&self, host: &str) -> Result<Updates, Refusal> {
        let now_ns = now_ns();
        let mut state = self.lock();
        let known = state.engine.fabric().topology().host(host);
        known.ok_or(Refusal::NoHost)?;
        if state.mastership.is_standby() {
            return Err(Refusal::Standby);
        }
        let updates = state.subscribers.subscribe(host);
        let State {
            engine,
            subscribers,
            ..
        } = &mut *state;
        if let Some(host) = engine.fabric().topology().host(host) {
            let all: Vec<LeafPair> = engine.patterns().map(|(pair, _)| pair).collect();
            let (mut update, mut versions) = self.update_of(engine, host.leaf, &all);
            if let Some((thresholds, version)) = self.thresholds(engine) {
                update.thresholds = Some(thresholds);
                Arc::make_mut(&mut versions).insert(What::Thresholds, version);
            }
            update.peers = view::peers(engine.fabric(), host);
            subscribers.send(&host.name, update, versions);
        }
        self.rearm(&state, now_ns);
        Ok(updates)
    }

    /// Records what the kernel of `host` has applied, and when by its clock.
    pub fn acknowledge(&self, host: &str, update: u64, applied_ns: u64) {
        let mut state = self.lock();
        let taken = state.subscribers.acknowledge(host, update);
        let State {
            engine, recorder, ..
        } = &mut *state;
        for (what, version) in taken {
            let What::Pattern(pair) = what else {
                continue;
            };
            let mut decisions = engine.history(pair).rev();
            let Some(decision) = decisions.find(|decision| decision.pattern.version == version)
            else {
                continue;
            };
            let applied = Applied {
                host,
                pair,
                decision,
                applied_ns,
            };
            let appended = recorder.as_mut().map(|to| to.append_applied(&applied));
            if let Some(Err(error)) = appended {
                warn!(%error, "cannot write loop.csv; recording stops");
                *recorder = None;
            }
        }
    }

    /// A stream of all samples.
    #[must_use]
    pub fn watch_telemetry(&self) -> broadcast::Receiver<v1::TelemetryEvent> {
        self.telemetry.subscribe()
    }

    /// Renews what hosts have and serves the engine's deadlines. Sleeps while there is nothing to
    /// renew, or no agent. Returns only if the system has no timers.
    ///
    /// # Errors
    /// See [`Alarm`].
    pub async fn keep_time(&self) -> std::io::Result<()> {
        let alarm = Alarm::new()?;
        loop {
            let armed_ns = {
                let mut state = self.lock();
                state.armed_ns = self.next_wake_ns(&state).unwrap_or(u64::MAX);
                state.armed_ns
            };
            let moved = self.timer_moved.notified();
            if armed_ns == u64::MAX {
                moved.await;
            } else {
                tokio::select! {
                    () = moved => {}
                    rung = alarm.sleep_until(armed_ns) => {
                        rung?;
                        self.tick();
                    }
                }
            }
        }
    }

    fn tick(&self) {
        let now_ns = now_ns();
        let mut state = self.lock();
        self.publish_changes(&mut state, now_ns);
        if self
            .renewal_ns(&state)
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            state.renewed_ns = now_ns;
            for host in state.subscribers.hosts() {
                let renewal = v1::PatternUpdate {
                    renew: true,
                    ..v1::PatternUpdate::default()
                };
                state.subscribers.send(&host, renewal, Arc::default());
            }
        }
    }

    /// Sends and records due patterns. Does nothing on standby: the other controller's patterns
    /// are in force, and paths that are silent here may report to it.
    fn publish_changes(&self, state: &mut State, now_ns: u64) {
        if state.mastership.is_standby() {
            return;
        }
        let changed = state.engine.poll(now_ns);
        for probe in state.engine.take_probes() {
            let outgoing = probe::encode(state.engine.fabric(), probe);
            let outgoing = outgoing.and_then(|outgoing| {
                let switch = state.switches.get(&outgoing.switch)?;
                Some((switch, outgoing))
            });
            if let Some((switch, outgoing)) = outgoing {
                // A switch that is slow or has no session counts as not answering.
                let _ = switch.try_send(Order::Send(outgoing));
            }
        }
        self.publish_classes(state, now_ns);
        if changed.is_empty() {
            return;
        }
        // Hosts first; files and logs can wait.
        let State {
            engine,
            subscribers,
            ..
        } = &mut *state;
        let leaves: BTreeSet<u8> = changed.iter().map(|pair| pair.source).collect();
        for leaf in leaves {
            let (update, versions) = self.update_of(engine, leaf, &changed);
            for host in engine.fabric().hosts_of(leaf) {
                subscribers.send(&host.name, update.clone(), versions.clone());
            }
        }
        for &pair in &changed {
            self.note(state, pair);
        }
    }

    /// Logs and records the new pattern of `pair`.
    fn note(&self, state: &mut State, pair: LeafPair) {
        let Some(pattern) = state.engine.pattern(pair) else {
            return;
        };
        info!(
            from = pair.source,
            to = pair.destination,
            version = pattern.version,
            costs_ns = ?pattern.costs_ns,
            sequence = letters(&pattern.sequence),
            "new pattern"
        );
        let recorder = state.recorder.as_mut();
        let appended = recorder.map(|recorder| recorder.append(&state.engine, pair, pattern));
        if let Some(Err(error)) = appended {
            warn!(%error, "cannot write patterns.csv; recording stops");
            state.recorder = None;
        }
    }

    /// The update for the hosts of `leaf`: the patterns of those `pairs` that start there.
    fn update_of(
        &self,
        engine: &Engine,
        leaf: u8,
        pairs: &[LeafPair],
    ) -> (v1::PatternUpdate, Arc<Versions>) {
        let own = pairs.iter().filter(|pair| pair.source == leaf);
        let known = own.filter_map(|&pair| Some((pair, engine.pattern(pair)?)));
        let known: Vec<_> = known.collect();
        let (life_ns, unit_ns) = (self.time_to_live_ns, self.wait_unit_ns);
        let patterns = known
            .iter()
            .map(|&(pair, pattern)| view::leaf_pattern(life_ns, unit_ns, pair, pattern));
        let update = v1::PatternUpdate {
            patterns: patterns.collect(),
            ..v1::PatternUpdate::default()
        };
        let versions = known
            .iter()
            .map(|(pair, pattern)| (What::Pattern(*pair), pattern.version));
        (update, Arc::new(versions.collect()))
    }

    /// When to renew what hosts have; `None` if they have nothing, or if there are no agents.
    fn renewal_ns(&self, state: &State) -> Option<u64> {
        let has_patterns = state.engine.patterns().next().is_some();
        let classes = state.engine.classes();
        let has_thresholds = classes.is_some_and(|classes| classes.decided().is_some());
        if !has_patterns && !has_thresholds || state.subscribers.is_empty() {
            return None;
        }
        let interval_ns = (self.time_to_live_ns / RENEWALS_PER_LIFE).max(1_000_000);
        Some(state.renewed_ns.saturating_add(interval_ns))
    }

    fn next_wake_ns(&self, state: &State) -> Option<u64> {
        if state.mastership.is_standby() {
            return None;
        }
        [state.engine.next_deadline_ns(), self.renewal_ns(state)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Wakes the timer task if it would sleep too long.
    fn rearm(&self, state: &State, now_ns: u64) {
        let wanted_ns = self.next_wake_ns(state).unwrap_or(u64::MAX);
        if wanted_ns.max(now_ns) < state.armed_ns {
            self.timer_moved.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics in the middle of a change while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs changes of links.
fn report(engine: &mut Engine) {
    for LinkEvent {
        switch,
        port,
        fault,
    } in engine.take_link_events()
    {
        match fault {
            Fault::Slow { percent } => {
                warn!(switch, port, percent, "slow link");
            }
            Fault::Lossy { loss_ppm } => warn!(switch, port, loss_ppm, "gray link: loses packets"),
            Fault::FullRate => info!(switch, port, "slow link recovered"),
            Fault::NoLoss => info!(switch, port, "gray link recovered"),
        }
    }
}

/// `sampled_ns` if the switch can share our clock; BMv2 doesn't.
fn same_clock(now_ns: u64, sampled_ns: u64) -> Option<u64> {
    (now_ns.abs_diff(sampled_ns) < CLOCK_SKEW_MAX_NS).then_some(sampled_ns)
}

#[cfg(test)]
mod tests;
