// SPDX-License-Identifier: Apache-2.0

//! `weft classes`: the classes of what connections have left to send, and why their thresholds
//! are what they are.

use serde_json::{Value, json};
use tonic::transport::Channel;
use weft_proto::v1::weft_client::WeftClient;
use weft_proto::v1::{
    ClassBySent, ExplainClassesRequest, ExplainClassesResponse, PriorityClass, ThresholdsDecision,
    Waiting,
};
use weft_text::table::Table;
use weft_text::units::{format_bytes, format_duration};

use crate::query::QueryArgs;
use crate::{Outcome, client, display};

/// Shows the classes of the running lab.
pub async fn classes(args: &QueryArgs) -> Outcome {
    let mut client = client::connect(&args.lab.name).await?;
    let classes = of(&mut client).await?;
    if args.json {
        return display::out_json(&document(&classes));
    }
    if classes.classes.is_empty() {
        return display::out("no classes: start the lab with --priorities\n");
    }
    display::out(text(&classes))
}

/// Asks the controller.
pub async fn of(client: &mut WeftClient<Channel>) -> anyhow::Result<ExplainClassesResponse> {
    let answer = client.explain_classes(ExplainClassesRequest {}).await;
    Ok(answer.map_err(client::refusal)?.into_inner())
}

/// The classes as a table, and where their thresholds come from.
pub fn text(classes: &ExplainClassesResponse) -> String {
    let columns = [
        "",
        "class",
        "left to send",
        "of the bytes",
        "at most",
        "waits now",
    ];
    let mut table = Table::new(3, columns);
    for (number, class) in classes.classes.iter().enumerate() {
        table.push(vec![
            String::new(),
            number.to_string(),
            left(classes, number),
            share(class),
            match class.rate_ppm {
                0 => "-".to_owned(),
                ppm => format!("{} of the link", percent(ppm)),
            },
            waits(class.waiting.unwrap_or_default()),
        ]);
    }
    format!(
        "classes   of the bytes of a typical host, and at most from each host\n{table}  in force  {}\n  now       {}\n{}",
        in_force(classes),
        outlook(classes),
        others(classes)
    )
}

/// One line about the thresholds; empty without classes.
pub fn line(classes: &ExplainClassesResponse) -> String {
    if classes.classes.is_empty() {
        return String::new();
    }
    let bounds = bounds(classes.classes.iter().map(|class| class.most_bytes));
    let from = if classes.version == 0 {
        "built-in"
    } else {
        "by the sizes of flows"
    };
    format!("\nthresholds between classes, {from}: {bounds}\n")
}

/// How many packets of a class wait in the queues of switches, and how long.
fn waits(waiting: Waiting) -> String {
    match waiting.depth_packets {
        0 => "-".to_owned(),
        packets => {
            let longest = format_duration(waiting.delay_ns as f64);
            format!("{packets} packets, up to {longest}")
        }
    }
}

/// How much is left to send in a class.
fn left(classes: &ExplainClassesResponse, number: usize) -> String {
    let bytes = |number: usize| classes.classes[number].most_bytes;
    match number {
        0 => "urgent".to_owned(),
        number if bytes(number) > 0 => format!("up to {}", format_bytes(bytes(number))),
        1 => "anything".to_owned(),
        number => format!("above {}", format_bytes(bytes(number - 1))),
    }
}

fn share(class: &PriorityClass) -> String {
    match class.share_ppm {
        0 => "-".to_owned(),
        ppm => percent(ppm),
    }
}

fn percent(ppm: u32) -> String {
    format!("{:.1}%", f64::from(ppm) / 1e4)
}

/// Thresholds in a row.
fn bounds(most_bytes: impl Iterator<Item = u64>) -> String {
    let bounded = most_bytes.filter(|bytes| *bytes > 0).map(format_bytes);
    let bounds: Vec<String> = bounded.collect();
    if bounds.is_empty() {
        return "none".to_owned();
    }
    bounds.join(", ")
}

fn in_force(classes: &ExplainClassesResponse) -> String {
    let Some(decision) = classes.history.last() else {
        return "the thresholds that are built into the kernel".to_owned();
    };
    let hosts = match &classes.acknowledged_by[..] {
        [] => "no host has them yet".to_owned(),
        hosts => format!("in the kernels of {}", hosts.join(", ")),
    };
    format!("{}; {hosts}", decision_text(decision))
}

/// When, what, and why.
fn decision_text(decision: &ThresholdsDecision) -> String {
    format!(
        "{:12.6}  {}  (by {} that were sent, waiting should fall to {})",
        decision.decided_ns as f64 / 1e9,
        bounds(decision.most_bytes.iter().copied()),
        format_bytes(decision.seen_bytes),
        percent(decision.waiting_ppm),
    )
}

/// What has to happen until the thresholds are looked at again.
fn outlook(classes: &ExplainClassesResponse) -> String {
    if !classes.adapts {
        return "thresholds do not follow the traffic (--class-thresholds built-in)".to_owned();
    }
    if classes.windows < classes.needed_windows {
        return format!(
            "too little seen yet: {} of {} windows of 200 ms and {}",
            classes.windows,
            classes.needed_windows,
            format_bytes(classes.needed_bytes)
        );
    }
    format!(
        "thresholds follow the sizes of flows of the last {} windows",
        classes.needed_windows
    )
}

/// A line about flows whose hosts claim no class; empty if all of these are in the last one.
fn others(classes: &ExplainClassesResponse) -> String {
    if classes.by_sent.is_empty() {
        return String::new();
    }
    let steps = classes.by_sent.iter();
    let steps = steps.map(|step| {
        format!(
            "up to {} class {}",
            format_bytes(step.most_bytes),
            step.class_number
        )
    });
    let last = classes.classes.len() - 1;
    format!(
        "  others    flows that claim no class, by what they have sent: {}, then class {last}\n",
        steps.collect::<Vec<_>>().join(", ")
    )
}

/// The classes as JSON.
pub fn document(classes: &ExplainClassesResponse) -> Value {
    let class = |class: &PriorityClass| {
        json!({
            "most_bytes": Some(class.most_bytes).filter(|bytes| *bytes > 0),
            "share_ppm": class.share_ppm,
            "rate_ppm": Some(class.rate_ppm).filter(|ppm| *ppm > 0),
            "waiting_packets": class.waiting.map_or(0, |waiting| waiting.depth_packets),
            "longest_delay_ns": class.waiting.map_or(0, |waiting| waiting.delay_ns),
        })
    };
    let sent =
        |step: &ClassBySent| json!({"class": step.class_number, "most_bytes": step.most_bytes});
    let decision = |decision: &ThresholdsDecision| {
        json!({
            "version": decision.version,
            "decided_ns": decision.decided_ns,
            "most_bytes": decision.most_bytes,
            "seen_bytes": decision.seen_bytes,
            "waiting_ppm": decision.waiting_ppm,
        })
    };
    json!({
        "classes": classes.classes.iter().map(class).collect::<Vec<_>>(),
        "version": Some(classes.version).filter(|version| *version > 0),
        "acknowledged_by": classes.acknowledged_by,
        "history": classes.history.iter().map(decision).collect::<Vec<_>>(),
        "seen_bytes": classes.seen_bytes,
        "needed_bytes": classes.needed_bytes,
        "by_sent": classes.by_sent.iter().map(sent).collect::<Vec<_>>(),
        "adapts": classes.adapts,
        "windows": classes.windows,
        "needed_windows": classes.needed_windows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four() -> ExplainClassesResponse {
        let class = |most_bytes, share_ppm, rate_ppm| PriorityClass {
            most_bytes,
            share_ppm,
            rate_ppm,
            waiting: None,
        };
        ExplainClassesResponse {
            classes: vec![
                class(0, 0, 50_000),
                class(45_000, 125_000, 500_000),
                class(20_000_000, 375_000, 1_000_000),
                class(0, 500_000, 0),
            ],
            needed_bytes: 20_000_000,
            windows: 3,
            needed_windows: 8,
            adapts: true,
            ..ExplainClassesResponse::default()
        }
    }

    #[test]
    fn flows_that_claim_no_class_have_one_by_what_they_have_sent() {
        let mut classes = four();
        assert!(!text(&classes).contains("others"));
        let step = |class_number, most_bytes| ClassBySent {
            class_number,
            most_bytes,
        };
        classes.by_sent = vec![step(1, 45_000), step(2, 20_000_000)];
        let expected = "  others    flows that claim no class, by what they have sent: up to 45 kB class 1, \
                        up to 20 MB class 2, then class 3\n";
        assert!(text(&classes).ends_with(expected), "{}", text(&classes));
        let document = document(&classes);
        assert_eq!(document["by_sent"][1]["most_bytes"], 20_000_000);
    }

    #[test]
    fn every_class_says_what_is_left_and_what_a_host_may_send() {
        let mut classes = four();
        classes.classes[3].waiting = Some(Waiting {
            depth_packets: 17,
            delay_ns: 3_200_000,
        });
        let text = text(&classes);
        let rows: Vec<&str> = text.lines().skip(2).take(4).map(str::trim).collect();
        let squeezed = |row: &str| row.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows: Vec<String> = rows.into_iter().map(squeezed).collect();
        assert_eq!(
            rows,
            [
                "0 urgent - 5.0% of the link -",
                "1 up to 45 kB 12.5% 50.0% of the link -",
                "2 up to 20 MB 37.5% 100.0% of the link -",
                "3 above 20 MB 50.0% - 17 packets, up to 3.20 ms",
            ]
        );
        assert!(text.contains("in force  the thresholds that are built into the kernel"));
        assert!(
            text.contains("3 of 8 windows of 200 ms and 20 MB"),
            "{text}"
        );
    }

    #[test]
    fn a_decision_says_when_why_and_who_has_it() {
        let mut classes = four();
        classes.version = 7;
        classes.history = vec![ThresholdsDecision {
            version: 7,
            decided_ns: 1_500_000_000,
            most_bytes: vec![45_000, 20_000_000],
            seen_bytes: 31_000_000,
            waiting_ppm: 820_000,
        }];
        assert!(text(&classes).contains(
            "1.500000  45 kB, 20 MB  (by 31 MB that were sent, waiting should fall to 82.0%); \
             no host has them yet"
        ));
        classes.acknowledged_by = vec!["h1_1".into(), "h2_1".into()];
        assert!(text(&classes).contains("in the kernels of h1_1, h2_1"));
        assert_eq!(
            line(&classes),
            "\nthresholds between classes, by the sizes of flows: 45 kB, 20 MB\n"
        );
        assert_eq!(document(&classes)["history"][0]["seen_bytes"], 31_000_000);
    }

    #[test]
    fn without_classes_there_is_nothing_to_say() {
        assert_eq!(line(&ExplainClassesResponse::default()), "");
    }
}
