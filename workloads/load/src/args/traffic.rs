//! What the flags of a workload ask for, checked against each other.

use std::path::PathBuf;

use super::{Pattern, WorkloadArgs};
use crate::distribution::Distribution;

/// What a workload sends, checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// [`Pattern::Random`].
    Random {
        /// Name of the distribution.
        name: String,
        /// Sizes.
        sizes: Distribution,
        /// Share of the host links' rate.
        load: f64,
        /// Number of flows.
        flows: u32,
    },
    /// [`Pattern::Incast`].
    Incast {
        /// Number of flows.
        senders: u32,
        /// Size of each.
        bytes: u64,
        /// Mean time between their starts; 0: all at once.
        interarrival_ns: u64,
    },
    /// [`Pattern::Bulk`].
    Bulk {
        /// Number of flows.
        flows: u32,
        /// How long each is.
        volume: Volume,
    },
    /// [`Pattern::Page`].
    Page {
        /// Number of objects.
        objects: u32,
        /// Size of all of them together.
        bytes: u64,
        /// Connections.
        parallel: u32,
    },
}

/// When a long flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// After so many bytes.
    Bytes(u64),
    /// After so many nanoseconds.
    Duration(u64),
}

impl WorkloadArgs {
    /// Checks what clap cannot, and reads the distribution.
    ///
    /// # Errors
    /// One line that says which flag is wrong and what would be right.
    pub fn traffic(&self) -> Result<Traffic, String> {
        self.check_flags()?;
        match self.pattern {
            Pattern::Random => {
                let (name, sizes) = read_distribution(self.workload.as_deref())?;
                let load = self.load.unwrap_or(0.3);
                if !(load > 0.0 && load <= 1.0) {
                    return Err(format!(
                        "--load {load}: give a share of the host links' rate above 0 and at \
                         most 1, such as 0.3"
                    ));
                }
                Ok(Traffic::Random {
                    name,
                    sizes,
                    load,
                    flows: at_least_one("--flows", self.flows.unwrap_or(200))?,
                })
            }
            Pattern::Incast => Ok(Traffic::Incast {
                senders: at_least_one("--senders", self.senders.unwrap_or(10))?,
                bytes: self.bytes.unwrap_or(225_000),
                interarrival_ns: self.interarrival.unwrap_or(0),
            }),
            Pattern::Bulk => Ok(Traffic::Bulk {
                flows: at_least_one("--flows", self.flows.unwrap_or(1))?,
                volume: match (self.bytes, self.duration) {
                    (Some(_), Some(_)) => {
                        return Err("--bytes and --duration both say when a flow ends; leave \
                                    one of the two out"
                            .to_owned());
                    }
                    (_, Some(ns)) => Volume::Duration(ns),
                    (bytes, None) => Volume::Bytes(bytes.unwrap_or(20_000_000)),
                },
            }),
            Pattern::Page => {
                let objects = at_least_one("--objects", self.objects.unwrap_or(100))?;
                let bytes = self.bytes.unwrap_or(2_000_000);
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

    /// Refuses flags of other patterns.
    fn check_flags(&self) -> Result<(), String> {
        use Pattern::{Bulk, Incast, Page, Random};
        let flags: [(&str, bool, &[Pattern]); 9] = [
            ("--workload", self.workload.is_some(), &[Random]),
            ("--load", self.load.is_some(), &[Random]),
            ("--flows", self.flows.is_some(), &[Random, Bulk]),
            ("--senders", self.senders.is_some(), &[Incast]),
            ("--interarrival", self.interarrival.is_some(), &[Incast]),
            ("--bytes", self.bytes.is_some(), &[Incast, Bulk, Page]),
            ("--duration", self.duration.is_some(), &[Bulk]),
            ("--objects", self.objects.is_some(), &[Page]),
            ("--parallel", self.parallel.is_some(), &[Page]),
        ];
        for (flag, given, patterns) in flags {
            if given && !patterns.contains(&self.pattern) {
                let names: Vec<_> = patterns.iter().filter_map(super::value_name).collect();
                return Err(format!(
                    "{flag} belongs to --pattern {}; leave one of the two out",
                    names.join(" or ")
                ));
            }
        }
        Ok(())
    }
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
            parse("--pattern incast").traffic(),
            Ok(Traffic::Incast {
                senders: 10,
                bytes: 225_000,
                interarrival_ns: 0,
            })
        );
    }

    #[test]
    fn bulk_is_one_flow_of_20_mb_unless_told_otherwise() {
        let expected = Traffic::Bulk {
            flows: 1,
            volume: Volume::Bytes(20_000_000),
        };
        assert_eq!(parse("--pattern bulk").traffic(), Ok(expected));
    }

    #[test]
    fn a_page_is_100_objects_over_six_connections_unless_told_otherwise() {
        let expected = Traffic::Page {
            objects: 100,
            bytes: 2_000_000,
            parallel: 6,
        };
        assert_eq!(parse("--pattern page").traffic(), Ok(expected));
    }

    #[test]
    fn wrong_values_are_named_with_what_would_be_right() {
        let error = |line| parse(line).traffic().unwrap_err();
        assert!(error("--load 30").contains("above 0 and at most 1, such as 0.3"));
        assert!(error("--load nan").contains("such as 0.3"));
        assert_eq!(error("--flows 0"), "--flows 0: give at least 1");
        assert!(error("--workload webserach").contains("neither one of websearch, datamining"));
        assert_eq!(
            error("--senders 4"),
            "--senders belongs to --pattern incast; leave one of the two out"
        );
        assert_eq!(
            error("--pattern incast --flows 4"),
            "--flows belongs to --pattern random or bulk; leave one of the two out"
        );
        assert!(error("--pattern incast --duration 1s").contains("--pattern bulk"));
        assert!(error("--pattern bulk --duration 1s --bytes 1MB").contains("one of the two"));
        assert!(error("--pattern page --objects 9 --bytes 8").contains("a byte for each"));
        assert_eq!(
            error("--pattern page --parallel 0"),
            "--parallel 0: give at least 1"
        );
    }
}
