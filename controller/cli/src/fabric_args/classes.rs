// SPDX-License-Identifier: Apache-2.0

//! Classes of what connections have left to send, as flags.

use clap::Args;
use weft_controller::classes::ThresholdsFrom;
use weft_text::units::parse_share_ppm;
use weft_topology::CLASSES_MAX;

use super::shape::Shape;

/// What `--first-come` calls the queues of all hosts, and of all switches.
const HOSTS: &str = "hosts";
const SWITCHES: &str = "switches";

/// Classes: how many there are, and who heeds them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fabric")]
pub struct ClassArgs {
    /// Number of classes, from 2 to 8: hosts write into DSCP how much a connection has left to
    /// send, and switches serve the smallest first [default: none, queues are first in, first out]
    #[arg(long, value_name = "CLASSES", value_parser = clap::value_parser!(u8).range(2..=i64::from(CLASSES_MAX)))]
    pub priorities: Option<u8>,

    /// With --priorities, the share of a link for the lowest class that waits for it, so that
    /// nothing starves. 0% serves in strict order [default: 10%]
    #[arg(long, value_name = "SHARE", value_parser = parse_share_ppm)]
    pub lowest_share: Option<u32>,

    /// With --priorities, what the thresholds between classes follow: the sizes of flows that
    /// switches see (seen), or nothing, those of the kernel hold (built-in)
    #[arg(long, value_name = "FROM", default_value_t = ThresholdsFrom::default())]
    pub class_thresholds: ThresholdsFrom,

    /// With --priorities, whose queues stay first in, first out: hosts, switches, or switches by
    /// name: spine1,leaf2
    #[arg(long, value_name = "WHO", value_delimiter = ',')]
    pub first_come: Vec<String>,

    /// With --priorities, hosts whose classes their leaf clears, as a middlebox may: h1_1,h2_3.
    /// Their flows get classes by what they have sent, as those of hosts that claim none
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    pub clear_classes: Vec<String>,
}

impl ClassArgs {
    /// Checks the flags for a fabric of this shape.
    ///
    /// # Errors
    /// One line that says which flag is wrong.
    pub fn check(&self, shape: &Shape) -> Result<(), String> {
        let of_classes = [
            ("--lowest-share", self.lowest_share.is_some()),
            (
                "--class-thresholds",
                self.class_thresholds != ThresholdsFrom::default(),
            ),
            ("--first-come", !self.first_come.is_empty()),
            ("--clear-classes", !self.clear_classes.is_empty()),
        ];
        let given = of_classes.iter().find(|(_, is_given)| *is_given);
        if let (Some((flag, _)), None) = (given, self.priorities) {
            return Err(format!(
                "{flag}: there are no classes; give --priorities too"
            ));
        }
        for who in &self.first_come {
            if ![HOSTS, SWITCHES].contains(&who.as_str()) && !shape.has_switch(who) {
                return Err(format!(
                    "--first-come names {who}; there are {HOSTS}, {SWITCHES}, and {}",
                    shape.switch_names()
                ));
            }
        }
        match self.clear_classes.iter().find(|host| !shape.has_host(host)) {
            Some(host) => Err(format!(
                "--clear-classes names {host}, which is no host; hosts are named by leaf and \
                 place, such as h1_1"
            )),
            None => Ok(()),
        }
    }
}
