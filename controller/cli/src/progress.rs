// SPDX-License-Identifier: Apache-2.0

//! Progress of boots and runs, on a terminal only.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Deserialize;
use serde_json::Value;
use weft_lab::Step;

/// What `weft-load` writes to `progress.json`.
#[derive(Debug, Deserialize)]
struct Report {
    flows_done: u64,
    flows: u64,
    bytes_done: u64,
    bytes: u64,
}

/// One line for one lab: its boot, then its flows.
#[derive(Debug)]
pub struct RunBar {
    bar: ProgressBar,
    runs: bool,
}

impl RunBar {
    /// A line that starts with `name`.
    pub fn new(name: &str) -> Self {
        Self::with(ProgressBar::no_length(), name)
    }

    /// One of several lines.
    pub fn among(lines: &MultiProgress, name: &str) -> Self {
        Self::with(lines.add(ProgressBar::no_length()), name)
    }

    fn with(bar: ProgressBar, name: &str) -> Self {
        bar.set_style(style("{prefix:.bold} {spinner} {msg} {elapsed}"));
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, runs: false }
    }

    /// Says what is going on.
    pub fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// A step of the boot is done.
    pub fn step(&self, step: &Step) {
        self.say(format!("booting: {}", step.name));
    }

    /// Shows what `progress.json` says.
    pub fn report(&mut self, report: &Value) {
        let Ok(report) = Report::deserialize(report) else {
            return;
        };
        if !self.runs {
            self.runs = true;
            self.bar.set_style(style(
                "{prefix:.bold} {wide_bar} {pos}/{len} flows  {msg}  {elapsed}",
            ));
        }
        self.bar.set_length(report.flows);
        self.bar.set_position(report.flows_done);
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        self.say(format!(
            "{:.0} of {:.0} MB",
            megabytes(report.bytes_done),
            megabytes(report.bytes)
        ));
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for RunBar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_sound() {
        for template in [
            "{prefix:.bold} {spinner} {msg} {elapsed}",
            "{prefix:.bold} {wide_bar} {pos}/{len} flows  {msg}  {elapsed}",
        ] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn a_report_moves_the_bar_and_nonsense_does_not() {
        let mut bar = RunBar::new("rb");
        bar.report(&serde_json::json!({"flows_done": 3, "flows": 10, "bytes_done": 5, "bytes": 9}));
        assert_eq!((bar.bar.position(), bar.bar.length()), (3, Some(10)));
        bar.report(&serde_json::json!({"flows": "many"}));
        assert_eq!(bar.bar.position(), 3);
    }
}
