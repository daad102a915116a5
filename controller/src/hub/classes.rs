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

    /// Sends new thresholds to all hosts, and new limits to all leaves.
    pub(super) fn publish_classes(&self, state: &mut State, now_ns: u64) {
        let changes = state.engine.poll_classes(now_ns);
        if changes.thresholds {
            self.send_thresholds(state);
        }
        if changes.rates {
            for (switch, orders) in &state.switches {
                let Some(order) = limits(&state.engine, switch) else {
                    continue;
                };
                if orders.try_send(order).is_err() {
                    warn!(switch, "it is busy, and keeps the old limits of classes");
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

/// The order that sets the limits of a leaf; `None` for other switches, and before there are any.
pub(super) fn limits(engine: &Engine, switch: &str) -> Option<Order> {
    let rates = engine.classes()?.rates();
    let role = engine.fabric().topology().switch(switch)?.role;
    (role == Role::Leaf && !rates.is_empty()).then(|| Order::Limit(rates.into()))
}
