// SPDX-License-Identifier: Apache-2.0

//! The names of switches and links, as the topology gives them.

use weft_lab::HostsSpec;

use super::shape::Shape;

impl Shape {
    /// Whether there is a switch of this name.
    #[must_use]
    pub fn has_switch(&self, name: &str) -> bool {
        match self.sizes() {
            Sizes::LeafSpine { leaves, spines } => {
                numbered(name, "leaf", leaves).is_some()
                    || numbered(name, "spine", spines).is_some()
            }
            Sizes::FatTree { k } => {
                let half = k / 2;
                numbered(name, "edge", k * half).is_some()
                    || numbered(name, "core", half * half).is_some()
                    || aggregation(name, k).is_some()
            }
        }
    }

    /// Whether there is a link of this name: those of its ends, the lower one first.
    #[must_use]
    pub fn has_link(&self, name: &str) -> bool {
        let Some((lower, upper)) = name.split_once('-') else {
            return false;
        };
        if let Some((leaf, _)) = host_parts(lower) {
            return self.has_host(lower) && upper == format!("{}{leaf}", self.leaf_word());
        }
        match self.sizes() {
            Sizes::LeafSpine { leaves, spines } => {
                numbered(lower, "leaf", leaves).is_some()
                    && numbered(upper, "spine", spines).is_some()
            }
            Sizes::FatTree { k } => {
                let half = k / 2;
                let edge = numbered(lower, "edge", k * half);
                let core = numbered(upper, "core", half * half);
                match (edge, aggregation(lower, k), aggregation(upper, k), core) {
                    (Some(edge), _, Some((pod, _)), _) => (edge - 1) / half + 1 == pod,
                    (_, Some((_, place)), _, Some(core)) => (core - 1) / half + 1 == place,
                    _ => false,
                }
            }
        }
    }

    /// The names of all switches, in short.
    #[must_use]
    pub fn switch_names(&self) -> String {
        match self.sizes() {
            Sizes::LeafSpine { leaves, spines } => {
                format!("leaf1 to leaf{leaves} and spine1 to spine{spines}")
            }
            Sizes::FatTree { k } => {
                let half = k / 2;
                format!(
                    "edge1 to edge{}, agg1_1 to agg{k}_{half} and core1 to core{}",
                    k * half,
                    half * half
                )
            }
        }
    }

    /// A link between switches, for example.
    #[must_use]
    pub fn example_link(&self) -> &'static str {
        match self.sizes() {
            Sizes::LeafSpine { .. } => "leaf1-spine1",
            Sizes::FatTree { .. } => "edge1-agg1_1 or agg1_1-core1",
        }
    }

    fn leaf_word(&self) -> &'static str {
        match self.sizes() {
            Sizes::LeafSpine { .. } => "leaf",
            Sizes::FatTree { .. } => "edge",
        }
    }

    /// Whether there is a host of this name.
    #[must_use]
    pub fn has_host(&self, name: &str) -> bool {
        let numbers = host_parts(name).map(|(leaf, host)| (number(leaf), number(host)));
        let Some((Some(leaf), Some(host))) = numbers else {
            return false;
        };
        let leaves = match self.sizes() {
            Sizes::LeafSpine { leaves, .. } => leaves,
            Sizes::FatTree { k } => k * (k / 2),
        };
        let hosts = match self {
            Self::LeafSpine { hosts, .. } => match hosts {
                HostsSpec::Same(hosts) => Some(hosts),
                HostsSpec::Each(each) => each.get(usize::from(leaf).saturating_sub(1)),
            }
            .copied(),
            Self::FatTree { k } => Some(k / 2),
            Self::ManyToOne { .. } | Self::TwoPath { .. } => Some(1),
            Self::Dumbbell { hosts, .. } => Some(*hosts),
        };
        (1..=leaves).contains(&leaf)
            && hosts.is_some_and(|hosts| (1..=hosts.into()).contains(&host))
    }

    fn sizes(&self) -> Sizes {
        match self {
            Self::LeafSpine { leaves, spines, .. } => Sizes::LeafSpine {
                leaves: (*leaves).into(),
                spines: (*spines).into(),
            },
            Self::FatTree { k } => Sizes::FatTree { k: (*k).into() },
            Self::ManyToOne { hosts, links } => Sizes::LeafSpine {
                leaves: (*hosts).into(),
                spines: (*links).into(),
            },
            Self::TwoPath { profiles } | Self::Dumbbell { profiles, .. } => Sizes::LeafSpine {
                leaves: 2,
                // Checked: at most eight.
                spines: profiles.len() as u16,
            },
        }
    }
}

/// What names depend on.
enum Sizes {
    LeafSpine { leaves: u16, spines: u16 },
    FatTree { k: u16 },
}

/// The number in a name such as `leaf3`, if it is no more than `most`.
fn numbered(name: &str, word: &str, most: u16) -> Option<u16> {
    let number = number(name.strip_prefix(word)?)?;
    (1..=most).contains(&number).then_some(number)
}

/// Pod and place of `agg3_1`.
fn aggregation(name: &str, k: u16) -> Option<(u16, u16)> {
    let (pod, place) = name.strip_prefix("agg")?.split_once('_')?;
    let (pod, place) = (number(pod)?, number(place)?);
    ((1..=k).contains(&pod) && (1..=k / 2).contains(&place)).then_some((pod, place))
}

/// A number as names have it: without sign and leading zeros.
fn number(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

/// Leaf and place of a host in its name: `h1_2`.
fn host_parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix('h')?.split_once('_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_named_by_their_ends_the_lower_one_first() {
        let tree = Shape::FatTree { k: 4 };
        for link in [
            "edge1-agg1_2",
            "edge8-agg4_1",
            "agg3_2-core4",
            "agg1_1-core1",
            "h8_2-edge8",
        ] {
            assert!(tree.has_link(link), "{link}");
        }
        for link in [
            "edge1-agg2_1",
            "agg1_1-core3",
            "core1-agg1_1",
            "edge1-core1",
            "h9_1-edge9",
            "h1_3-edge1",
            "h1_1-edge2",
            "edge1",
            "-",
        ] {
            assert!(!tree.has_link(link), "{link}");
        }
        let unequal = Shape::LeafSpine {
            leaves: 2,
            spines: 3,
            hosts: HostsSpec::Each(vec![1, 4]),
        };
        for link in ["leaf2-spine3", "h1_1-leaf1", "h2_4-leaf2"] {
            assert!(unequal.has_link(link), "{link}");
        }
        for link in [
            "leaf3-spine1",
            "leaf1-spine4",
            "leaf1-spine01",
            "h1_2-leaf1",
            "h3_1-leaf3",
        ] {
            assert!(!unequal.has_link(link), "{link}");
        }
    }
}
