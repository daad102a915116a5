// SPDX-License-Identifier: Apache-2.0

//! The flag that says what switches are: weft-switch, or BMv2.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use nix::unistd::{AccessFlags, access};
use weft_lab::{CommonSpec, LabSpec, NicSpec};
use weft_text::units::format_rate;

use crate::Failure;

/// BMv2 with a P4Runtime server.
const PROGRAM: &str = "simple_switch_grpc";

/// A full-size Ethernet frame, which a rate in frames counts.
const FRAME_BITS: u64 = 8 * 1514;

/// What runs the programs of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SwitchKind {
    /// `weft-switch`.
    Weft,
    /// `simple_switch_grpc`.
    Bmv2,
}

/// The switches, as a flag.
#[derive(Debug, Clone, Args)]
pub struct SwitchArgs {
    /// What runs the P4 programs of switches: weft-switch (weft), or BMv2, one
    /// simple_switch_grpc for each switch (bmv2)
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        default_value = "weft",
        hide_possible_values = true,
        help_heading = "Fabric"
    )]
    switch: SwitchKind,
}

impl SwitchArgs {
    /// Makes the switches of `spec` what the flag says.
    ///
    /// # Errors
    /// What BMv2 cannot do, or that it is not installed.
    pub fn apply(&self, spec: &mut LabSpec) -> Result<(), Failure> {
        if self.switch == SwitchKind::Weft {
            return Ok(());
        }
        if let Some(topology) = &spec.topology {
            refuse(topology.common()).map_err(Failure::Usage)?;
        }
        if spec.capture.is_some() {
            let what = "--capture: with --switch bmv2 no switch writes any";
            return Err(Failure::Usage(what.to_owned()));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = find(std::env::split_paths(&path)).ok_or_else(|| {
            anyhow::anyhow!(
                "--switch bmv2: no {PROGRAM} on PATH; it is in the P4 project's package \
                 p4lang-bmv2 (https://github.com/p4lang/behavioral-model says where)"
            )
        })?;
        spec.bmv2 = Some(program);
        Ok(())
    }
}

/// What BMv2 makes different from what flags and tables say; nothing with `weft-switch`.
pub fn notice(spec: &LabSpec) -> Option<String> {
    let program = spec.bmv2.as_ref()?;
    let rate_bps = spec.topology.as_ref()?.common().rate_bps;
    Some(format!(
        "switches are BMv2, one {} each; what that cannot do:\n  \
         nanoseconds  clocks, RTTs and queueing delays are whole microseconds\n  \
         bit rates    a queue serves packets: {} is {} frames/s, and a short one takes as \
         long as a full one;\n               over an idle link a frame takes no time but the delay;\n               \
         links that carry less than they should are not found\n  \
         two ways     a host's link has the delay of both ways on the way to the host\n  \
         counts       no queues.csv, captures, P4 NICs, jitter, or links that change\n  \
         speed        some hundred microseconds of real time a packet and switch; threads of \
         several\n               processes: no run repeats another\n",
        program.display(),
        format_rate(rate_bps),
        packets_per_second(rate_bps),
    ))
}

/// A link's rate in full-size frames, as `weft_topology.bmv2` sets it.
fn packets_per_second(rate_bps: u64) -> u64 {
    ((rate_bps + FRAME_BITS / 2) / FRAME_BITS).max(1)
}

fn refuse(common: &CommonSpec) -> Result<(), String> {
    let refused = [
        (
            !common.changes.is_empty(),
            "--change",
            "links do not change",
        ),
        (common.host_jitter_ns > 0, "--host-jitter", "there is none"),
        (common.nic == NicSpec::P4, "--nic p4", "NICs run no program"),
        (
            common.priorities.is_some(),
            "--priorities",
            "every priority of a port has the link's whole rate, so classes would not be served in \
             order; leave it out, or take --switch weft",
        ),
        (
            common.queue_bytes.is_some(),
            "--queue in bytes",
            "queues count packets, such as 100",
        ),
    ];
    let first = refused.into_iter().find(|(given, ..)| *given);
    match first {
        Some((_, flag, what)) => Err(format!("{flag}: with --switch bmv2 {what}")),
        None => Ok(()),
    }
}

/// The first program of that name in `folders`, as an absolute path.
fn find(folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let can_run = |file: &Path| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    folders
        .map(|folder| folder.join(PROGRAM))
        .find(|file| can_run(file))
        .and_then(|file| std::path::absolute(file).ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use weft_lab::{ChangeSpec, InBandSpec, MAX_SUBFLOWS, RoutingSpec};

    use super::*;

    fn common() -> CommonSpec {
        CommonSpec {
            rate_bps: 1_000_000_000,
            host_rate_bps: 1_000_000_000,
            sender_rate_bps: None,
            delay_ns: 10_000,
            queue_packets: 100,
            queue_bytes: None,
            ecn_packets: None,
            ecn_bytes: None,
            subflows: MAX_SUBFLOWS,
            route_metrics: std::collections::BTreeMap::new(),
            routing: RoutingSpec::Subflow,
            flowlet_timeout_ns: None,
            priorities: None,
            lowest_share_ppm: None,
            first_come: Vec::new(),
            clear_classes: Vec::new(),
            ip: 4,
            changes: Vec::new(),
            host_jitter_ns: 0,
            nic: NicSpec::Plain,
            in_band: InBandSpec::Off,
        }
    }

    #[test]
    fn what_bmv2_cannot_do_is_refused_by_the_flag_that_asks_for_it() {
        assert_eq!(refuse(&common()), Ok(()));
        let changes = vec![ChangeSpec::default()];
        for (common, flag) in [
            (
                CommonSpec {
                    changes,
                    ..common()
                },
                "--change",
            ),
            (
                CommonSpec {
                    host_jitter_ns: 1,
                    ..common()
                },
                "--host-jitter",
            ),
            (
                CommonSpec {
                    nic: NicSpec::P4,
                    ..common()
                },
                "--nic p4",
            ),
            (
                CommonSpec {
                    priorities: Some(8),
                    ..common()
                },
                "--priorities",
            ),
            (
                CommonSpec {
                    queue_bytes: Some(9000),
                    ..common()
                },
                "--queue",
            ),
        ] {
            let said = refuse(&common).unwrap_err();
            assert!(
                said.starts_with(flag) && said.contains("--switch bmv2"),
                "{said}"
            );
        }
    }

    #[test]
    fn the_first_on_the_path_that_can_run_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str, mode| {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(PROGRAM), "").unwrap();
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(folder.join(PROGRAM), mode).unwrap();
            folder
        };
        let folders = [
            dir.path().join("none"),
            folder("text", 0o644),
            folder("bin", 0o755),
        ];
        let found = find(folders.clone().into_iter());
        assert_eq!(found, Some(folders[2].join(PROGRAM)));
        assert_eq!(find(folders[..2].iter().cloned()), None);
    }

    #[test]
    fn a_rate_in_frames_is_rounded_and_never_none() {
        assert_eq!(packets_per_second(1_000_000_000), 82_563);
        assert_eq!(packets_per_second(1), 1);
    }
}
