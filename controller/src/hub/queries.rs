// SPDX-License-Identifier: Apache-2.0

//! User queries: patterns, their explanations, and paths.

use weft_proto::v1;

use super::Hub;
use crate::clock::now_ns;
use crate::subscribers::What;
use crate::view;

impl Hub {
    /// Every pair's pattern.
    #[must_use]
    pub fn list_patterns(&self) -> Vec<v1::LeafPairPattern> {
        let now_ns = now_ns();
        let state = self.lock();
        let engine = &state.engine;
        engine
            .patterns()
            .map(|(pair, pattern)| v1::LeafPairPattern {
                source_leaf: pair.source.into(),
                destination_leaf: pair.destination.into(),
                version: pattern.version,
                age_ns: now_ns.saturating_sub(pattern.at_ns),
                time_to_live_ns: self.time_to_live_ns,
                paths: view::paths(engine, now_ns, pair),
                sequence: pattern.sequence.iter().map(|&path| path.into()).collect(),
                acknowledged_by: state
                    .subscribers
                    .acknowledged_by(What::Pattern(pair), pattern.version),
                source: engine.fabric().leaf_name(pair.source).to_owned(),
                destination: engine.fabric().leaf_name(pair.destination).to_owned(),
            })
            .collect()
    }

    /// Explains the pattern of a pair, or of all pairs where a leaf is 0; `None` if the topology
    /// has no such pair.
    #[must_use]
    pub fn explain(&self, source_leaf: u32, destination_leaf: u32) -> Option<Vec<v1::Explanation>> {
        let now_ns = now_ns();
        let state = self.lock();
        let engine = &state.engine;
        let wanted = |leaf: u8, asked: u32| asked == 0 || u32::from(leaf) == asked;
        let pairs: Vec<_> = engine
            .fabric()
            .pairs()
            .filter(|pair| {
                wanted(pair.source, source_leaf) && wanted(pair.destination, destination_leaf)
            })
            .map(|pair| view::explanation(engine, now_ns, pair))
            .collect();
        (!pairs.is_empty()).then_some(pairs)
    }

    /// Every pair's paths.
    #[must_use]
    pub fn list_paths(&self) -> Vec<v1::LeafPairPaths> {
        let now_ns = now_ns();
        let state = self.lock();
        let fabric = state.engine.fabric();
        fabric
            .pairs()
            .map(|pair| v1::LeafPairPaths {
                source_leaf: pair.source.into(),
                destination_leaf: pair.destination.into(),
                paths: view::paths(&state.engine, now_ns, pair),
                source: fabric.leaf_name(pair.source).to_owned(),
                destination: fabric.leaf_name(pair.destination).to_owned(),
            })
            .collect()
    }
}
