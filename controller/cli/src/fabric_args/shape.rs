// SPDX-License-Identifier: Apache-2.0

//! Which fabric, and what it is made of: `--topology fat-tree --k 4`.

use clap::{Args, ValueEnum};
use weft_lab::{HostsSpec, MAX_SUBFLOWS};
use weft_text::units::parse_share_ppm;

use super::parse_queue;

/// Kinds of fabrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Every leaf is cabled to every spine.
    LeafSpine,
    /// Pods of edge and aggregation switches, and cores between them.
    FatTree,
    /// Hosts with several links each, all to one switch.
    ManyToOne,
    /// Two hosts, and two paths of known kinds between them.
    TwoPath,
    /// The same with several hosts at each end.
    Dumbbell,
}

/// Kinds of paths, see `weft_topology/profiles.py`.
const PROFILES: [&str; 4] = ["wlan", "3g", "wifi", "lte"];

/// The shape of the fabric, as flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fabric")]
pub struct ShapeArgs {
    /// Kind of fabric: leaf-spine, fat-tree, or a testbed of the papers: several links from
    /// each host to one switch (many-to-one), two hosts and two different paths (two-path), or
    /// the same with several hosts at each end (dumbbell)
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        default_value = "leaf-spine",
        hide_possible_values = true
    )]
    topology: Kind,

    /// Number of leaves (racks) of a leaf-spine [default: 2]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=250))]
    leaves: Option<u8>,

    /// Number of spines of a leaf-spine, each of which is a path between racks [default: 2]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=250))]
    spines: Option<u8>,

    /// Number of hosts: per leaf, or one number for each leaf (4,8); in all (many-to-one); at
    /// each end (dumbbell) [default: leaf-spine and dumbbell 4, many-to-one 3]
    #[arg(long, value_name = "COUNT", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=250))]
    hosts: Vec<u8>,

    /// Ratio of what the hosts of the fullest leaf can send to what the leaf's uplinks carry.
    /// The rate of links between switches follows from it. For leaf-spine and fat-tree
    #[arg(long, value_name = "RATIO", conflicts_with = "rate", value_parser = parse_ratio)]
    oversubscription: Option<f64>,

    /// Number of ports of each switch of a fat-tree, which is even: k pods, k/2 hosts at each
    /// edge switch, (k/2)^2 paths between pods [default: 4]
    #[arg(long, value_name = "PORTS", value_parser = clap::value_parser!(u8).range(4..=16))]
    k: Option<u8>,

    /// Number of links from each host of a many-to-one to its switch [default: 2]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=8))]
    links: Option<u8>,

    /// Paths of two-path and dumbbell: wlan and 3g as in BLEST, wifi and lte as in STMS, or
    /// RATE/RTT[/PACKETS[/LOSS]] [default: wlan,3g]
    #[arg(long, value_name = "PATH,PATH", value_delimiter = ',', value_parser = parse_profile)]
    profile: Vec<String>,
}

/// The same, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// So many of each.
    LeafSpine {
        /// Leaves.
        leaves: u8,
        /// Spines.
        spines: u8,
        /// Hosts of leaves.
        hosts: HostsSpec,
    },
    /// Of switches with so many ports.
    FatTree {
        /// Ports; even.
        k: u8,
    },
    /// Hosts with links to one switch.
    ManyToOne {
        /// Hosts.
        hosts: u8,
        /// Links of each.
        links: u8,
    },
    /// Two hosts.
    TwoPath {
        /// Of each path.
        profiles: Vec<String>,
    },
    /// Hosts at two ends.
    Dumbbell {
        /// Hosts at each end.
        hosts: u8,
        /// Of each path.
        profiles: Vec<String>,
    },
}

impl ShapeArgs {
    /// The shape.
    ///
    /// # Errors
    /// One line that says which flag is wrong.
    pub fn shape(&self) -> Result<Shape, String> {
        self.check_kind()?;
        match self.topology {
            Kind::LeafSpine => self.leaf_spine(),
            Kind::FatTree => match self.k.unwrap_or(4) {
                k if k % 2 == 1 => Err(format!("--k {k} is odd; give an even number from 4 to 16")),
                k => Ok(Shape::FatTree { k }),
            },
            Kind::ManyToOne => {
                let hosts = self.one_number_of_hosts(3)?;
                if hosts < 2 {
                    return Err("--hosts 1: give at least 2, a sender and the receiver".to_owned());
                }
                let links = self.links.unwrap_or(2);
                Ok(Shape::ManyToOne { hosts, links })
            }
            Kind::TwoPath => match self.profiles()? {
                profiles if profiles.len() == 2 => Ok(Shape::TwoPath { profiles }),
                profiles => Err(format!(
                    "--profile names {} paths; two-path has two, such as wlan,3g",
                    profiles.len()
                )),
            },
            Kind::Dumbbell => Ok(Shape::Dumbbell {
                hosts: self.one_number_of_hosts(4)?,
                profiles: self.profiles()?,
            }),
        }
    }

    /// The rate of links between switches that `--oversubscription` says, if it does.
    ///
    /// # Errors
    /// One line that says why there is none.
    pub fn rate_bps(&self, shape: &Shape, sender_bps: u64) -> Result<Option<u64>, String> {
        let Some(ratio) = self.oversubscription else {
            return Ok(None);
        };
        let (hosts, uplinks) = match shape {
            Shape::LeafSpine { spines, hosts, .. } => (hosts.most(), *spines),
            _ => (1, 1),
        };
        let rate_bps = sender_bps as f64 * f64::from(hosts) / (f64::from(uplinks) * ratio);
        if !(1e6..=1e12).contains(&rate_bps) {
            return Err(format!(
                "--oversubscription {ratio}: links up would have {rate_bps:.0} bit/s; they have \
                 1mbit to 1tbit"
            ));
        }
        Ok(Some(rate_bps.round() as u64))
    }

    /// Refuses flags of other kinds of fabrics.
    fn check_kind(&self) -> Result<(), String> {
        use Kind::{Dumbbell, FatTree, LeafSpine, ManyToOne, TwoPath};
        let flags: [(&str, bool, &[Kind]); 7] = [
            ("--leaves", self.leaves.is_some(), &[LeafSpine]),
            ("--spines", self.spines.is_some(), &[LeafSpine]),
            (
                "--hosts",
                !self.hosts.is_empty(),
                &[LeafSpine, ManyToOne, Dumbbell],
            ),
            (
                "--oversubscription",
                self.oversubscription.is_some(),
                &[LeafSpine, FatTree],
            ),
            ("--k", self.k.is_some(), &[FatTree]),
            ("--links", self.links.is_some(), &[ManyToOne]),
            ("--profile", !self.profile.is_empty(), &[TwoPath, Dumbbell]),
        ];
        for (flag, is_given, kinds) in flags {
            if is_given && !kinds.contains(&self.topology) {
                let kinds: Vec<String> = kinds.iter().map(name_of).collect();
                return Err(format!(
                    "{flag} is of --topology {}, not of {}",
                    kinds.join(" and "),
                    name_of(&self.topology)
                ));
            }
        }
        Ok(())
    }

    fn leaf_spine(&self) -> Result<Shape, String> {
        let (leaves, hosts) = match self.hosts[..] {
            [] => (self.leaves.unwrap_or(2), HostsSpec::Same(4)),
            [hosts] => (self.leaves.unwrap_or(2), HostsSpec::Same(hosts)),
            ref each => {
                // As many as a command line has words.
                let leaves = u8::try_from(each.len()).unwrap_or(u8::MAX);
                (
                    self.leaves.unwrap_or(leaves),
                    HostsSpec::Each(each.to_vec()),
                )
            }
        };
        if let HostsSpec::Each(each) = &hosts {
            if each.len() != usize::from(leaves) {
                return Err(format!(
                    "--hosts has {} numbers for --leaves {leaves}; give one, or one of each leaf",
                    each.len()
                ));
            }
        }
        Ok(Shape::LeafSpine {
            leaves,
            spines: self.spines.unwrap_or(2),
            hosts,
        })
    }

    fn one_number_of_hosts(&self, default: u8) -> Result<u8, String> {
        match self.hosts[..] {
            [] => Ok(default),
            [hosts] => Ok(hosts),
            _ => Err(format!(
                "--hosts has {} numbers; {} takes one",
                self.hosts.len(),
                name_of(&self.topology)
            )),
        }
    }

    fn profiles(&self) -> Result<Vec<String>, String> {
        if self.profile.len() > usize::from(MAX_SUBFLOWS) {
            return Err(format!(
                "--profile names {} paths; a connection has {MAX_SUBFLOWS} at most",
                self.profile.len()
            ));
        }
        Ok(if self.profile.is_empty() {
            vec!["wlan".to_owned(), "3g".to_owned()]
        } else {
            self.profile.clone()
        })
    }
}

fn name_of(kind: &Kind) -> String {
    // None is skipped.
    kind.to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok();
    ratio
        .filter(|ratio| (0.01..=1000.0).contains(ratio))
        .ok_or_else(|| format!("{text:?} is no ratio from 0.01 to 1000, such as 2"))
}

/// Checks the kind of a path; what it means is the topology's to say.
fn parse_profile(text: &str) -> Result<String, String> {
    if PROFILES.contains(&text) {
        return Ok(text.to_owned());
    }
    let parts: Vec<&str> = text.split('/').collect();
    if !(2..=4).contains(&parts.len()) {
        return Err(format!(
            "{text:?} is none of {}, and no RATE/RTT[/PACKETS[/LOSS]] such as 20mbit/50ms/100/1%",
            PROFILES.join(", ")
        ));
    }
    super::parse_link_rate(parts[0])?;
    super::parse_delay(parts[1])?;
    parts.get(2).map_or(Ok(0), |queue| parse_queue(queue))?;
    parts.get(3).map_or(Ok(0), |loss| parse_share_ppm(loss))?;
    Ok(text.to_owned())
}
