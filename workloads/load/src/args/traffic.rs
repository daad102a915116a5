// SPDX-License-Identifier: Apache-2.0

//! What the flags of a workload ask for, checked against each other.

use std::path::PathBuf;

use super::{DEFAULT_LOAD, TrafficKind, WorkloadArgs};
use crate::distribution::Distribution;
pub use crate::plan::{Extent, Mix, Pairs, Traffic, Volume};
use crate::plan::{Starts, parse_flows};
use weft_text::units::format_duration;

/// Most flows of a run that goes on until its mean is known.
const PRECISE_FLOWS: u32 = 20_000;

impl WorkloadArgs {
    /// Checks what clap cannot, and reads the distribution or the list of flows.
    ///
    /// # Errors
    /// One line that says which flag is wrong and what would be right.
    pub fn traffic(&self) -> Result<Traffic, String> {
        self.check_flags()?;
        self.background.spec()?;
        let scale = self.scale_factor()?;
        let bytes_or = |bytes: Option<u64>, default: u64| {
            ((bytes.unwrap_or(default) as f64 * scale).ceil() as u64).max(1)
        };
        match self.kind {
            TrafficKind::Random => self.poisson(Pairs::Random, scale),
            TrafficKind::Permutation => self.poisson(Pairs::Permutation, scale),
            TrafficKind::ManyToOne => self.poisson(Pairs::ManyToOne, scale),
            TrafficKind::Incast => Ok(Traffic::Incast {
                senders: at_least_one("--senders", self.senders.unwrap_or(10))?,
                bytes: bytes_or(self.bytes, 225_000),
                starts: self.starts()?,
            }),
            TrafficKind::AllToAll => Ok(Traffic::AllToAll {
                bytes: bytes_or(self.bytes, 225_000),
                starts: self.starts()?,
            }),
            TrafficKind::Mixed => Ok(Traffic::Mixed(Mix {
                flows: at_least_one("--flows", self.flows.unwrap_or(50))?,
                long_share: share("--long-share", self.long_share.unwrap_or(0.2))?,
                long_bytes: bytes_or(self.bytes, 2_000_000_000),
                short_bytes: bytes_or(self.short_bytes, 2_000_000),
                starts: self.starts()?,
            })),
            TrafficKind::Queries => Ok(Traffic::Queries {
                queries: at_least_one("--flows", self.flows.unwrap_or(100))?,
                fan_out: at_least_one("--fan-out", self.fan_out.unwrap_or(8))?,
                bytes: bytes_or(self.bytes, 20_000),
                interarrival_ns: self.interarrival.unwrap_or(1_000_000),
                deadline_ns: self.deadline,
            }),
            TrafficKind::Replay => self.replay(scale),
            TrafficKind::Bulk => Ok(Traffic::Bulk {
                flows: at_least_one("--flows", self.flows.unwrap_or(1))?,
                volume: match (self.bytes, self.duration) {
                    (Some(_), Some(_)) => {
                        return Err("--bytes and --duration both say when a flow ends; leave \
                                    one of the two out"
                            .to_owned());
                    }
                    (_, Some(ns)) => Volume::Duration(ns),
                    (bytes, None) => Volume::Bytes(bytes_or(bytes, 20_000_000)),
                },
            }),
            TrafficKind::Page => {
                let objects = at_least_one("--objects", self.objects.unwrap_or(100))?;
                let bytes = bytes_or(self.bytes, 2_000_000);
                if bytes < u64::from(objects) {
                    return Err(format!(
                        "--bytes {bytes} for --objects {objects}: give at least a byte for each"
                    ));
                }
                Ok(Traffic::Page {
                    objects,
                    bytes,
                    parallel: at_least_one("--parallel", self.parallel.unwrap_or(6))?,
                })
            }
        }
    }

    fn poisson(&self, pairs: Pairs, scale: f64) -> Result<Traffic, String> {
        let (name, sizes) = read_distribution(self.workload.as_deref())?;
        let load = self.load.unwrap_or(DEFAULT_LOAD);
        if !(load > 0.0 && load <= 1.0) {
            return Err(format!(
                "--load {load}: give a share of the host links' rate above 0 and at \
                 most 1, such as 0.3"
            ));
        }
        if self
            .precision
            .is_some_and(|percent| percent.is_nan() || percent <= 0.0)
        {
            return Err("--precision: give percent above 0, such as 5".to_owned());
        }
        let (warmup_ns, arrivals_ns) = (self.warmup.unwrap_or(0), self.duration);
        if arrivals_ns.is_some_and(|ns| ns <= warmup_ns) {
            return Err(format!(
                "--warmup {}: flows arrive for {} only; give a shorter warm-up or a longer \
                 --duration",
                format_duration(warmup_ns as f64),
                format_duration(arrivals_ns.unwrap_or(0) as f64)
            ));
        }
        let default = if self.precision.is_some() {
            PRECISE_FLOWS
        } else {
            200
        };
        let extent = match (self.flows, self.duration) {
            (Some(_), Some(_)) => {
                return Err(
                    "--flows and --duration both say when no more flows arrive; leave \
                            one of the two out"
                        .to_owned(),
                );
            }
            (_, Some(ns)) => Extent::Time(ns),
            (flows, None) => Extent::Flows(at_least_one("--flows", flows.unwrap_or(default))?),
        };
        Ok(Traffic::Random {
            pairs,
            name,
            sizes: sizes.scaled(scale),
            load,
            extent,
        })
    }

    fn replay(&self, scale: f64) -> Result<Traffic, String> {
        let Some(list) = &self.flow_list else {
            return Err("--traffic replay needs --flow-list FILE".to_owned());
        };
        let text = std::fs::read_to_string(list)
            .map_err(|error| format!("--flow-list {list}: cannot be read ({error})"))?;
        let mut entries =
            parse_flows(&text).map_err(|error| format!("--flow-list {list}: {error}"))?;
        for entry in &mut entries {
            entry.bytes = ((entry.bytes as f64 * scale).ceil() as u64).max(1);
        }
        Ok(Traffic::Replay { entries })
    }

    fn starts(&self) -> Result<Starts, String> {
        match (self.interarrival, self.jitter) {
            (Some(_), Some(_)) => Err(
                "--interarrival and --jitter both say when flows start; leave one of the two out"
                    .to_owned(),
            ),
            (Some(ns), None) => Ok(Starts::Poisson(ns)),
            (None, Some(ns)) => Ok(Starts::Within(ns)),
            (None, None) => Ok(Starts::AtOnce),
        }
    }

    fn scale_factor(&self) -> Result<f64, String> {
        let factor = self.scale.unwrap_or(1.0);
        if factor > 0.0 && factor.is_finite() {
            return Ok(factor);
        }
        Err(format!(
            "--scale {factor}: give a factor above 0, such as 0.1"
        ))
    }

    /// Refuses flags of other kinds of traffic.
    fn check_flags(&self) -> Result<(), String> {
        use TrafficKind::{
            AllToAll, Bulk, Incast, ManyToOne, Mixed, Page, Permutation, Queries, Random, Replay,
        };
        const POISSON: &[TrafficKind] = &[Random, Permutation, ManyToOne];
        let flags: [(&str, bool, &[TrafficKind]); 17] = [
            ("--workload", self.workload.is_some(), POISSON),
            ("--load", self.load.is_some(), POISSON),
            (
                "--flows",
                self.flows.is_some(),
                &[Random, Permutation, ManyToOne, Bulk, Mixed, Queries],
            ),
            ("--precision", self.precision.is_some(), POISSON),
            ("--warmup", self.warmup.is_some(), POISSON),
            ("--senders", self.senders.is_some(), &[Incast]),
            (
                "--interarrival",
                self.interarrival.is_some(),
                &[Incast, AllToAll, Mixed, Queries],
            ),
            (
                "--jitter",
                self.jitter.is_some(),
                &[Incast, AllToAll, Mixed],
            ),
            (
                "--bytes",
                self.bytes.is_some(),
                &[Incast, AllToAll, Bulk, Mixed, Queries, Page],
            ),
            ("--short-bytes", self.short_bytes.is_some(), &[Mixed]),
            ("--long-share", self.long_share.is_some(), &[Mixed]),
            (
                "--duration",
                self.duration.is_some(),
                &[Bulk, Random, Permutation, ManyToOne],
            ),
            ("--objects", self.objects.is_some(), &[Page]),
            ("--parallel", self.parallel.is_some(), &[Page]),
            ("--fan-out", self.fan_out.is_some(), &[Queries]),
            ("--deadline", self.deadline.is_some(), &[Queries]),
            ("--flow-list", self.flow_list.is_some(), &[Replay]),
        ];
        for (flag, given, kinds) in flags {
            if given && !kinds.contains(&self.kind) {
                let names: Vec<_> = kinds.iter().filter_map(super::value_name).collect();
                return Err(format!(
                    "{flag} belongs to --traffic {}; leave one of the two out",
                    names.join(" or ")
                ));
            }
        }
        Ok(())
    }
}

fn share(flag: &str, share: f64) -> Result<f64, String> {
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(format!(
        "{flag} {share}: give a share from 0 to 1, such as 0.2"
    ))
}

fn read_distribution(name: Option<&str>) -> Result<(String, Distribution), String> {
    let name = name.unwrap_or("websearch");
    if let Some(sizes) = Distribution::built_in(name) {
        return Ok((name.to_owned(), sizes));
    }
    let path = PathBuf::from(name);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let known: Vec<_> = Distribution::names().collect();
        format!(
            "--workload {name}: neither one of {} nor a file that can be read ({error})",
            known.join(", ")
        )
    })?;
    let sizes =
        Distribution::parse(&text).map_err(|error| format!("--workload {name}: {error}"))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok((stem.into_owned(), sizes))
}

fn at_least_one(flag: &str, count: u32) -> Result<u32, String> {
    if count == 0 {
        return Err(format!("{flag} 0: give at least 1"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;

    #[test]
    fn an_incast_is_ten_times_225_kb_at_once_unless_told_otherwise() {
        assert_eq!(
            parse("--traffic incast").traffic(),
            Ok(Traffic::Incast {
                senders: 10,
                bytes: 225_000,
                starts: Starts::AtOnce,
            })
        );
    }

    #[test]
    fn bulk_is_one_flow_of_20_mb_unless_told_otherwise() {
        let expected = Traffic::Bulk {
            flows: 1,
            volume: Volume::Bytes(20_000_000),
        };
        assert_eq!(parse("--traffic bulk").traffic(), Ok(expected));
    }

    #[test]
    fn a_page_is_100_objects_over_six_connections_unless_told_otherwise() {
        let expected = Traffic::Page {
            objects: 100,
            bytes: 2_000_000,
            parallel: 6,
        };
        assert_eq!(parse("--traffic page").traffic(), Ok(expected));
    }

    #[test]
    fn a_mix_is_that_of_the_paper_unless_told_otherwise() {
        let Ok(Traffic::Mixed(mix)) = parse("--traffic mixed --scale 0.01").traffic() else {
            panic!("no mix");
        };
        assert_eq!((mix.flows, mix.long_share), (50, 0.2));
        assert_eq!((mix.long_bytes, mix.short_bytes), (20_000_000, 20_000));
    }

    #[test]
    fn wrong_values_are_named_with_what_would_be_right() {
        let error = |line| parse(line).traffic().unwrap_err();
        assert!(error("--load 30").contains("above 0 and at most 1, such as 0.3"));
        assert!(error("--load nan").contains("such as 0.3"));
        let warmup = error("--duration 1s --warmup 1s");
        assert_eq!(
            warmup,
            "--warmup 1.00 s: flows arrive for 1.00 s only; give a shorter warm-up or a longer \
             --duration"
        );
        assert!(error("--traffic bulk --warmup 1s").contains("--warmup belongs to --traffic"));
        assert_eq!(error("--flows 0"), "--flows 0: give at least 1");
        assert!(error("--workload webserach").contains("neither one of websearch, datamining"));
        assert_eq!(
            error("--senders 4"),
            "--senders belongs to --traffic incast; leave one of the two out"
        );
        assert_eq!(
            error("--traffic incast --flows 4"),
            "--flows belongs to --traffic random or permutation or many-to-one or bulk or mixed \
             or queries; leave one of the two out"
        );
        assert!(error("--traffic incast --duration 1s").contains("--traffic bulk"));
        assert!(error("--flows 4 --duration 1s").contains("one of the two"));
        assert!(error("--precision 0").contains("such as 5"));
        assert!(error("--scale 0").contains("such as 0.1"));
        assert!(error("--traffic mixed --long-share 2").contains("0 to 1"));
        assert!(error("--traffic incast --jitter 1us --interarrival 1us").contains("one of the"));
        assert!(error("--traffic replay").contains("needs --flow-list FILE"));
        assert!(error("--traffic replay --flow-list nowhere").contains("cannot be read"));
        assert!(error("--traffic bulk --duration 1s --bytes 1MB").contains("one of the two"));
        assert!(error("--traffic page --objects 9 --bytes 8").contains("a byte for each"));
        assert_eq!(
            error("--traffic page --parallel 0"),
            "--parallel 0: give at least 1"
        );
    }
}
