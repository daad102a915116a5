// SPDX-License-Identifier: Apache-2.0

//! Tables of results: of one run, or of several side by side.

mod stats;

use std::io::Write;

use anyhow::Result;

use crate::results::{FlowRow, Results, SwitchTotals};
pub use stats::{Summary, quantile};
use weft_text::table::Table;
use weft_text::units::format_duration;

/// Size classes of flows; 1 KB is 1000 bytes.
const CLASSES: [Class; 4] = [
    Class {
        label: "up to 100 KB",
        above: 0,
        up_to: 100_000,
    },
    Class {
        label: "100 KB to 1 MB",
        above: 100_000,
        up_to: 1_000_000,
    },
    Class {
        label: "above 1 MB",
        above: 1_000_000,
        up_to: u64::MAX,
    },
    Class {
        label: "all",
        above: 0,
        up_to: u64::MAX,
    },
];

#[derive(Debug, Clone, Copy)]
struct Class {
    label: &'static str,
    above: u64,
    up_to: u64,
}

impl Class {
    fn flows(self, results: &Results) -> impl Iterator<Item = &FlowRow> {
        results
            .measured()
            .filter(move |flow| self.above < flow.bytes && flow.bytes <= self.up_to)
    }
}

/// FCT and slowdown of the completed flows of a class.
struct Measured {
    fct_ns: Summary,
    slowdown: Summary,
}

impl Measured {
    fn of(results: &Results, class: Class) -> Option<Self> {
        let completed = || {
            class
                .flows(results)
                .filter_map(|flow| Some((flow.fct_ns? as f64, flow.ideal_fct_ns as f64)))
        };
        Some(Self {
            fct_ns: Summary::of(completed().map(|(fct, _)| fct))?,
            slowdown: Summary::of(completed().map(|(fct, ideal)| fct / ideal))?,
        })
    }
}

/// Counters of a whole run.
struct Totals {
    failed: usize,
    switches: Option<SwitchTotals>,
    retransmissions: u64,
    timeouts: u64,
    /// Flows with reinjections.
    reinjected: usize,
}

impl Totals {
    fn of(results: &Results) -> Self {
        let sum = |count: fn(&FlowRow) -> u64| results.measured().map(count).sum();
        Self {
            failed: results.measured().filter(|f| f.fct_ns.is_none()).count(),
            switches: results.switches,
            retransmissions: sum(|flow| flow.retransmissions),
            timeouts: sum(|flow| flow.timeouts),
            reinjected: results
                .measured()
                .filter(|flow| flow.reinjected_bytes > 0)
                .count(),
        }
    }

    fn dropped_text(&self) -> String {
        self.switches.map_or_else(
            || "not counted".into(),
            |totals| totals.dropped_packets.to_string(),
        )
    }

    /// Packets lost on links, if any were.
    fn lost(&self) -> Option<u64> {
        let lost = self.switches?.lost_packets;
        (lost > 0).then_some(lost)
    }
}

/// The table of one run.
#[must_use]
pub fn run_table(results: &Results) -> String {
    let mut table = Table::new(
        1,
        [
            "flows",
            "count",
            "FCT mean",
            "median",
            "p95",
            "p99",
            "slowdown mean",
            "median",
            "p95",
            "p99",
        ],
    );
    for class in CLASSES {
        if let Some(measured) = Measured::of(results, class) {
            let mut row = vec![class.label.to_owned(), measured.fct_ns.count.to_string()];
            row.extend(measured.fct_ns.values().map(format_duration));
            row.extend(measured.slowdown.values().map(format_slowdown));
            table.push(row);
        }
    }
    let totals = Totals::of(results);
    let failed = match totals.failed {
        0 => String::new(),
        failed => format!("   FAILED FLOWS: {failed}"),
    };
    let lost = totals
        .lost()
        .map_or_else(String::new, |lost| format!("   lost: {lost}"));
    let warmup = match results.flows.len() - results.measured().count() {
        0 => String::new(),
        left_out => format!("flows of the warm-up, left out: {left_out}\n"),
    };
    format!(
        "{table}{warmup}drops: {}{lost}   retransmissions: {}   timeouts: {}   flows with reinjections: {}{failed}\n",
        totals.dropped_text(),
        totals.retransmissions,
        totals.timeouts,
        totals.reinjected,
    )
}

/// A comparison of runs, with one column per run under the given name.
#[must_use]
pub fn comparison_table(runs: &[(String, Results)]) -> String {
    let mut header = vec!["flows".to_owned(), String::new()];
    header.extend(runs.iter().map(|(name, _)| name.clone()));
    let mut table = Table::new(2, header);
    for class in CLASSES {
        let measured: Vec<_> = runs
            .iter()
            .map(|(_, results)| Measured::of(results, class))
            .collect();
        if measured.iter().all(Option::is_none) {
            continue;
        }
        let mut label = class.label;
        let mut push = |what: String, cell: &dyn Fn(&Measured) -> String| {
            let mut row = vec![std::mem::take(&mut label).to_owned(), what];
            row.extend(
                measured
                    .iter()
                    .map(|run| run.as_ref().map_or_else(|| "-".into(), cell)),
            );
            table.push(row);
        };
        for (i, name) in Summary::NAMES.iter().enumerate() {
            push(format!("FCT {name}"), &|run| {
                format_duration(run.fct_ns.values()[i])
            });
        }
        for (i, name) in Summary::NAMES.iter().enumerate() {
            push(format!("slowdown {name}"), &|run| {
                format_slowdown(run.slowdown.values()[i])
            });
        }
    }
    let totals: Vec<Totals> = runs.iter().map(|(_, run)| Totals::of(run)).collect();
    let mut push = |name: &str, count: &dyn Fn(&Totals) -> String| {
        let mut row = vec![name.to_owned(), String::new()];
        row.extend(totals.iter().map(count));
        table.push(row);
    };
    push("drops", &Totals::dropped_text);
    if totals.iter().any(|totals| totals.lost().is_some()) {
        push("lost", &|totals| totals.lost().unwrap_or(0).to_string());
    }
    push("retransmissions", &|totals| {
        totals.retransmissions.to_string()
    });
    push("timeouts", &|totals| totals.timeouts.to_string());
    push("flows with reinjections", &|totals| {
        totals.reinjected.to_string()
    });
    push("failed flows", &|totals| totals.failed.to_string());
    table.to_string()
}

/// The comparison as CSV, with one row per run and size class.
///
/// # Errors
/// A write error of `output`.
pub fn comparison_csv(runs: &[(String, Results)], output: impl Write) -> Result<()> {
    let mut table = csv::Writer::from_writer(output);
    let mut header: Vec<String> = ["run", "flows", "count"].map(String::from).into();
    header.extend(Summary::NAMES.map(|name| format!("fct_{name}_ns")));
    header.extend(Summary::NAMES.map(|name| format!("slowdown_{name}")));
    header.extend(
        [
            "failed",
            "retransmissions",
            "timeouts",
            "reinjected_bytes",
            "dropped_packets",
            "lost_packets",
        ]
        .map(String::from),
    );
    table.write_record(&header)?;
    for (name, results) in runs {
        for class in CLASSES {
            let Some(measured) = Measured::of(results, class) else {
                continue;
            };
            let sum = |count: fn(&FlowRow) -> u64| -> u64 { class.flows(results).map(count).sum() };
            let mut row = vec![
                name.clone(),
                class.label.to_owned(),
                measured.fct_ns.count.to_string(),
            ];
            row.extend(measured.fct_ns.values().map(|ns| format!("{ns:.0}")));
            row.extend(measured.slowdown.values().map(|x| format!("{x:.4}")));
            row.push(sum(|flow| u64::from(flow.fct_ns.is_none())).to_string());
            row.push(sum(|flow| flow.retransmissions).to_string());
            row.push(sum(|flow| flow.timeouts).to_string());
            row.push(sum(|flow| flow.reinjected_bytes).to_string());
            let whole = class.above == 0 && class.up_to == u64::MAX;
            let totals = results.switches.filter(|_| whole);
            for count in [
                totals.map(|totals| totals.dropped_packets),
                totals.map(|totals| totals.lost_packets),
            ] {
                row.push(count.map(|count| count.to_string()).unwrap_or_default());
            }
            table.write_record(&row)?;
        }
    }
    table.flush()?;
    Ok(())
}

fn format_slowdown(slowdown: f64) -> String {
    if slowdown < 99.95 {
        format!("{slowdown:.2}")
    } else {
        format!("{slowdown:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{info, row};

    fn results(scheduler: &str, scale: u64) -> Results {
        let flows = [(50_000, 200), (60_000, 400), (100_001, 1_000_000)]
            .map(|(bytes, fct_ns)| row(bytes, Some(fct_ns * scale)));
        Results {
            info: info(scheduler),
            flows: flows.into_iter().chain([row(5, None)]).collect(),
            switches: Some(SwitchTotals {
                dropped_packets: 12,
                lost_packets: 0,
            }),
        }
    }

    #[test]
    fn a_run_is_shown_by_classes_with_its_totals() {
        let text = run_table(&results("rb", 1));
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1].join(" "),
            "up to 100 KB 2 300 ns 300 ns 390 ns 398 ns 3.00 3.00 3.90 3.98"
        );
        assert!(lines[2].join(" ").starts_with("100 KB to 1 MB 1 1.00 ms"));
        assert!(lines[3].join(" ").starts_with("all 3 "));
        assert_eq!(
            lines[4].join(" "),
            "drops: 12 retransmissions: 12 timeouts: 4 flows with reinjections: 4 FAILED FLOWS: 1"
        );
    }

    #[test]
    fn flows_of_the_warm_up_are_in_no_number_and_are_counted() {
        let mut run = results("rb", 1);
        run.info.workload.more.warmup_ns = Some(1_000);
        for flow in &mut run.flows[1..] {
            flow.start_ns = 1_000;
        }
        let text = run_table(&run);
        let first = text.lines().nth(1).unwrap();
        assert!(
            first.starts_with("up to 100 KB") && first.contains(" 1 "),
            "{first}"
        );
        assert!(
            text.contains("\nflows of the warm-up, left out: 1\n"),
            "{text}"
        );
        assert!(text.contains("retransmissions: 9 "), "{text}");
    }

    #[test]
    fn runs_stand_side_by_side() {
        let runs = [
            ("rb".to_owned(), results("rb", 1)),
            ("minrtt".to_owned(), results("minrtt", 2)),
        ];
        let text = comparison_table(&runs);
        let row = |label: &str| {
            let line = text.lines().find(|line| line.contains(label)).unwrap();
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            row("FCT mean"),
            ["up to 100 KB", "FCT mean", "300 ns", "600 ns"]
        );
        assert_eq!(row("timeouts"), ["timeouts", "4", "4"]);
        let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn the_csv_has_a_row_for_each_run_and_class() {
        let mut output = Vec::new();
        comparison_csv(&[("rb".to_owned(), results("rb", 1))], &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let mut lines = text.lines();
        assert_eq!(
            lines.next().unwrap(),
            "run,flows,count,fct_mean_ns,fct_median_ns,fct_p95_ns,fct_p99_ns,slowdown_mean,\
             slowdown_median,slowdown_p95,slowdown_p99,failed,retransmissions,timeouts,reinjected_bytes,dropped_packets,\
             lost_packets"
        );
        assert!(
            lines
                .next()
                .unwrap()
                .starts_with("rb,up to 100 KB,2,300,300,390,398,3.0000,")
        );
        assert!(lines.last().unwrap().ends_with(",1,12,4,5696,12,0"));
    }
}
