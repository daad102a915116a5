// SPDX-License-Identifier: Apache-2.0

//! Thresholds between classes go to hosts, and what hosts may send in each class to leaves.

use std::sync::Arc;

use tracing::{info, warn};
use weft_proto::v1;
use weft_topology::Role;

use super::{Hub, Order, State};
use crate::clock::now_ns;
use crate::engine::Engine;
use crate::subscribers::{Versions, What};
use crate::view;

impl Hub {
    /// The thresholds for hosts and their version; `None` while the built-in ones hold.
    pub(super) fn thresholds(&self, engine: &Engine) -> Option<(v1::Thresholds, u64)> {
        let decided = engine.classes()?.decided()?;
        let thresholds = v1::Thresholds {
            version: decided.version,
            time_to_live_ns: self.time_to_live_ns,
            most_bytes: decided.most_bytes.clone(),
        };
        Some((thresholds, decided.version))
    }

    /// Sends new thresholds to all hosts and leaves, and new limits to all leaves.
    pub(super) fn publish_classes(&self, state: &mut State, now_ns: u64) {
        let changes = state.engine.poll_classes(now_ns);
        if changes.thresholds {
            self.send_thresholds(state);
        }
        if changes.thresholds || changes.rates {
            let is_new = |order: &Order| changes.thresholds || matches!(order, Order::Limit(_));
            for (switch, channel) in &state.switches {
                for order in orders(&state.engine, switch).into_iter().filter(is_new) {
                    if channel.try_send(order).is_err() {
                        warn!(switch, "it is busy, and keeps what it knows of classes");
                    }
                }
            }
        }
    }

    fn send_thresholds(&self, state: &mut State) {
        let Some((thresholds, version)) = self.thresholds(&state.engine) else {
            return;
        };
        info!(version, most_bytes = ?thresholds.most_bytes, "new thresholds between classes");
        let update = v1::PatternUpdate {
            thresholds: Some(thresholds),
            ..v1::PatternUpdate::default()
        };
        let versions = Arc::new(Versions::from([(What::Thresholds, version)]));
        for host in state.subscribers.hosts() {
            let versions = Arc::clone(&versions);
            state.subscribers.send(&host, update.clone(), versions);
        }
    }

    /// The classes, their thresholds, and why; empty if hosts write no classes.
    #[must_use]
    pub fn explain_classes(&self) -> v1::ExplainClassesResponse {
        let state = self.lock();
        let Some(classes) = state.engine.classes() else {
            return v1::ExplainClassesResponse::default();
        };
        let version = classes.decided().map_or(0, |decided| decided.version);
        let acknowledged_by = state.subscribers.acknowledged_by(What::Thresholds, version);
        let waits = state.engine.telemetry().waiting(now_ns());
        view::classes(classes, acknowledged_by, &waits)
    }
}

/// What the switch has to know of classes by now: a leaf the limits and thresholds, once there
/// are others than at its start.
pub(super) fn orders(engine: &Engine, switch: &str) -> Vec<Order> {
    let role = engine.fabric().topology().switch(switch).map(|at| at.role);
    let (Some(Role::Leaf), Some(classes)) = (role, engine.classes()) else {
        return Vec::new();
    };
    let rates = (!classes.rates().is_empty()).then(|| Order::Limit(classes.rates().into()));
    let thresholds = classes.decided();
    let thresholds = thresholds.map(|own| Order::Classify(own.most_bytes.as_slice().into()));
    rates.into_iter().chain(thresholds).collect()
}
