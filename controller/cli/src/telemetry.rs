// SPDX-License-Identifier: Apache-2.0

//! `weft telemetry`: the switches' samples as they arrive.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use weft_proto::v1::telemetry_event::Sample;
use weft_proto::v1::{RttSample, TelemetryEvent, Waiting, WatchTelemetryRequest};
use weft_text::units::{format_bytes, format_duration};

use crate::query::{QueryArgs, duration_or};
use crate::{Outcome, client, display};

/// Prints samples, one per line, until the lab stops or the user has enough.
pub async fn watch(args: &QueryArgs) -> Outcome {
    let mut client = client::connect(&args.lab.name).await?;
    let mut events = client
        .watch_telemetry(WatchTelemetryRequest {})
        .await
        .map_err(client::refusal)?
        .into_inner();
    while let Some(event) = events.message().await.map_err(client::refusal)? {
        let line = if args.json {
            document(&event).to_string()
        } else {
            text(&event)
        };
        display::out(line + "\n")?;
    }
    Ok(())
}

/// A sample in one line.
pub fn text(event: &TelemetryEvent) -> String {
    let seconds = event.time_ns as f64 / 1e9;
    let what = match &event.sample {
        Some(Sample::Rtt(rtt)) => {
            let (from, to) = ends(rtt);
            format!(
                "RTT   path {}  {:>8}  {from} > {to}  {} B",
                display::path_letter(rtt.path),
                format_duration(rtt.rtt_ns as f64),
                rtt.length_bytes,
            )
        }
        Some(Sample::Queue(queue)) => format!(
            "queue port {:<3} {:>4} packets  {}{}",
            queue.port,
            queue.depth_packets,
            duration_or("no wait", queue.delay_ns),
            by_class(&queue.classes),
        ),
        Some(Sample::Loss(loss)) => format!(
            "loss  port {:<3} {:>4} of {} packets",
            loss.port, loss.lost_packets, loss.packets,
        ),
        Some(Sample::Classes(classes)) => {
            let sizes: Vec<String> = classes.bytes.iter().copied().map(format_bytes).collect();
            format!(
                "class port {:<3} {} in class 0, 1, ...",
                classes.port,
                sizes.join(", "),
            )
        }
        None => "sample of a kind this program does not know".to_owned(),
    };
    format!("{seconds:12.6}  {:<8}  {what}", event.switch)
}

/// A sample as JSON.
pub fn document(event: &TelemetryEvent) -> Value {
    let mut document = json!({"time_ns": event.time_ns, "switch": event.switch});
    match &event.sample {
        Some(Sample::Rtt(rtt)) => {
            let (source, destination) = ends(rtt);
            document["rtt"] = json!({
                "source": source,
                "destination": destination,
                "path": display::path_letter(rtt.path),
                "length_bytes": rtt.length_bytes,
                "rtt_ns": rtt.rtt_ns,
            });
        }
        Some(Sample::Queue(queue)) => {
            document["queue"] = json!({
                "port": queue.port,
                "depth_packets": queue.depth_packets,
                "delay_ns": queue.delay_ns,
            });
            if !queue.classes.is_empty() {
                let class = |class: &Waiting| json!({"depth_packets": class.depth_packets, "delay_ns": class.delay_ns});
                document["queue"]["classes"] = queue.classes.iter().map(class).collect();
            }
        }
        Some(Sample::Loss(loss)) => {
            document["loss"] = json!({
                "port": loss.port,
                "packets": loss.packets,
                "lost_packets": loss.lost_packets,
            });
        }
        Some(Sample::Classes(classes)) => {
            document["classes"] = json!({"port": classes.port, "bytes": classes.bytes});
        }
        None => {}
    }
    document
}

/// What waits in each class, without the empty ones.
fn by_class(classes: &[Waiting]) -> String {
    let waiting = classes
        .iter()
        .enumerate()
        .filter(|(_, class)| class.depth_packets > 0);
    let each: Vec<String> = waiting
        .map(|(number, class)| {
            let delay = format_duration(class.delay_ns as f64);
            format!("class {number}: {}, {delay}", class.depth_packets)
        })
        .collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("  ({})", each.join("; ")),
    }
}

/// `address:port` of both ends.
fn ends(rtt: &RttSample) -> (String, String) {
    let end = |address, port| format!("{}:{port}", Ipv4Addr::from_bits(address));
    (
        end(rtt.source_address, rtt.source_port),
        end(rtt.destination_address, rtt.destination_port),
    )
}

#[cfg(test)]
mod tests {
    use weft_proto::v1::{ClassSample, LossSample, QueueSample};

    use super::*;

    fn event(sample: Sample) -> TelemetryEvent {
        TelemetryEvent {
            time_ns: 1_500_000_000,
            switch: "leaf1".into(),
            sample: Some(sample),
        }
    }

    #[test]
    fn samples_are_one_line_each_in_both_forms() {
        let rtt = event(Sample::Rtt(RttSample {
            source_address: 0x0a01_0101,
            destination_address: 0x0a02_0101,
            source_port: 40_000,
            destination_port: 5201,
            path: 1,
            length_bytes: 1500,
            rtt_ns: 132_000,
        }));
        assert_eq!(
            text(&rtt),
            "    1.500000  leaf1     RTT   path B    132 us  10.1.1.1:40000 > 10.2.1.1:5201  1500 B"
        );
        assert_eq!(document(&rtt)["rtt"]["rtt_ns"], 132_000);
        let mut queue = QueueSample {
            port: 3,
            depth_packets: 12,
            delay_ns: 145_000,
            classes: Vec::new(),
        };
        let plain = event(Sample::Queue(queue.clone()));
        assert!(text(&plain).ends_with("queue port 3     12 packets  145 us"));
        assert_eq!(document(&plain)["queue"]["classes"], Value::Null);
        let empty = event(Sample::Queue(QueueSample {
            depth_packets: 0,
            delay_ns: 0,
            ..queue.clone()
        }));
        assert!(text(&empty).ends_with("queue port 3      0 packets  no wait"));
        let waiting = |depth_packets, delay_ns| Waiting {
            depth_packets,
            delay_ns,
        };
        queue.classes = vec![waiting(2, 9_000), waiting(0, 0), waiting(10, 145_000)];
        let queue = event(Sample::Queue(queue));
        assert!(text(&queue).ends_with("145 us  (class 0: 2, 9.00 us; class 2: 10, 145 us)"));
        assert_eq!(document(&queue)["queue"]["classes"][2]["delay_ns"], 145_000);
        let loss = event(Sample::Loss(LossSample {
            port: 1,
            packets: 12_800,
            lost_packets: 131,
        }));
        assert!(text(&loss).ends_with("loss  port 1    131 of 12800 packets"));
        assert_eq!(document(&loss)["loss"]["lost_packets"], 131);
        let classes = event(Sample::Classes(ClassSample {
            port: 1,
            bytes: vec![0, 2_500, 1_000_000],
        }));
        assert!(
            text(&classes).ends_with("class port 1   0 bytes, 2.5 kB, 1 MB in class 0, 1, ...")
        );
        assert_eq!(document(&classes)["classes"]["bytes"][1], 2_500);
        assert!(!document(&queue).to_string().contains('\n'));
    }
}
