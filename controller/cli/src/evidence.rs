// SPDX-License-Identifier: Apache-2.0

//! `weft evidence`: what happened to every packet of captured runs.

use std::path::PathBuf;

use weft_evidence::{Options, Summary, evaluate};
use weft_text::table::Table;
use weft_text::units::format_duration;

use crate::{Failure, Outcome, display};

/// Runs to look into.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folders of captured runs. Each gets a folder `evidence`
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,

    /// Also write packets.csv and data_acks.csv, with a row for every packet
    #[arg(long)]
    packets: bool,

    /// Maximum number of rows of queue.csv for each port
    #[arg(long, value_name = "ROWS", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    rows: u32,
}

/// Evaluates each run and shows them side by side.
pub fn run(args: &Args) -> Outcome {
    let options = Options {
        packets: args.packets,
        rows: args.rows as usize,
    };
    let mut summaries = Vec::new();
    for run in &args.runs {
        let summary = evaluate(run, options).map_err(|error| {
            if error.is_usage() {
                Failure::Usage(error.to_string())
            } else {
                Failure::Error(error.into())
            }
        })?;
        let name = run.file_name().unwrap_or(run.as_os_str());
        summaries.push((name.to_string_lossy().into_owned(), summary));
    }
    let places: Vec<_> = args
        .runs
        .iter()
        .map(|run| format!("evidence: {}\n", run.join("evidence").display()))
        .collect();
    display::out(format!("{}{}", table(&summaries), places.concat()))
}

fn table(summaries: &[(String, Summary)]) -> String {
    let names = summaries.iter().map(|(name, _)| name.clone());
    let mut table = Table::new(1, std::iter::once(String::new()).chain(names));
    let mut row = |label: &str, cell: &dyn Fn(&Summary) -> String| {
        let cells = summaries.iter().map(|(_, summary)| cell(summary));
        table.push(std::iter::once(label.to_owned()).chain(cells).collect());
    };
    let time = |ns: u64| format_duration(ns as f64);
    row("packets with data", &|s| s.data_packets.to_string());
    row("out of order", &|s| {
        percent(s.out_of_order_packets, s.data_packets)
    });
    row("out-of-order delay, mean", &|s| {
        format_duration(s.out_of_order_delay_ns.mean)
    });
    row("  p99", &|s| time(s.out_of_order_delay_ns.p99));
    row("  max", &|s| time(s.out_of_order_delay_ns.max));
    row("out-of-order queue, max bytes", &|s| {
        s.out_of_order_queue_max_bytes.to_string()
    });
    row("Data ACK leap, mean packets", &|s| {
        format!("{:.2}", s.data_ack_leap_packets.mean)
    });
    row("  p99", &|s| s.data_ack_leap_packets.p99.to_string());
    row("  max", &|s| s.data_ack_leap_packets.max.to_string());
    row("bursty strength, mean packets", &|s| {
        format!("{:.2}", s.bursty_strength_packets.mean)
    });
    row("  max", &|s| s.bursty_strength_packets.max.to_string());
    row("queue met, mean packets", &|s| {
        format!("{:.1}", s.queue_packets.mean)
    });
    row("  p99", &|s| s.queue_packets.p99.to_string());
    row("  max", &|s| s.queue_packets.max.to_string());
    row("dropped at observed queues", &|s| {
        let rate = percent(s.dropped_packets, s.arrived_packets);
        format!("{} ({rate})", s.dropped_packets)
    });
    row("retransmitted", &|s| s.retransmitted_packets.to_string());
    row("reinjected", &|s| s.reinjected_packets.to_string());
    table.to_string()
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.2}%", part as f64 / whole as f64 * 100.0)
}
