// SPDX-License-Identifier: Apache-2.0

//! What becomes of links while traffic runs: `--change "at 2s link leaf1-spine2 down"`.

use weft_lab::ChangeSpec;
use weft_text::units::parse_share_ppm;

use super::shape::Shape;
use super::{parse_delay, parse_duration_ns, parse_link_rate, parse_loss, parse_queue};

/// Checks the changes for a fabric, and puts them in order.
///
/// # Errors
/// One line that names the flag.
pub fn check(changes: &[ChangeSpec], shape: &Shape) -> Result<Vec<ChangeSpec>, String> {
    let mut changes = changes.to_vec();
    for change in &mut changes {
        let is_number = change.target.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && !matches!(shape, Shape::FatTree { .. }) {
            change.target = format!("spine{}", change.target);
        }
        let name = &change.target;
        if name.contains('-') {
            if !shape.has_link(name) {
                return Err(format!(
                    "--change names {name}, which is no link; links are named by their ends, the \
                     lower one first, such as {} or h1_1-{}",
                    shape.example_link(),
                    shape.example_link().split('-').next().unwrap_or("leaf1"),
                ));
            }
        } else if !shape.has_switch(name) {
            return Err(format!(
                "--change names {name}; there are {}",
                shape.switch_names()
            ));
        }
        let of_host = name.contains('-') && name.starts_with('h');
        let has_more = change.rate_bps.or(change.rate_ppm).or(change.delay_ns);
        if of_host && has_more.or(change.queue_packets).is_some() {
            return Err(format!(
                "--change of {name}: a link to a host has loss, or is down or up; its rate, delay \
                 and queue stay"
            ));
        }
    }
    changes.sort_by_key(|change| change.at_ns);
    Ok(changes)
}

/// A change from `at TIME link NAME CHANGE ...`, or `TIME:NAME:KEY=VALUE[,KEY=VALUE]`.
///
/// # Errors
/// One line that says what a change looks like.
pub fn parse_change(text: &str) -> Result<ChangeSpec, String> {
    let text = text.trim();
    match text.strip_prefix("at ") {
        Some(words) => in_words(text, words),
        None => in_short(text),
    }
}

fn wrong(text: &str) -> String {
    format!(
        "{text:?} is no change; write \"at 20ms link leaf1-spine2 down\", \"at 2s switch spine1 \
         rate 0.5 loss 1%\" or 2s:spine1:rate=10mbit,delay=50ms"
    )
}

fn in_words(text: &str, words: &str) -> Result<ChangeSpec, String> {
    let mut words = words.split_whitespace();
    let (Some(at), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
        return Err(wrong(text));
    };
    match (kind, name.contains('-')) {
        ("link", true) | ("switch", false) => {}
        ("link", false) => {
            return Err(format!(
                "{text:?}: {name} is no link; links are named by their ends, such as leaf1-spine2"
            ));
        }
        ("switch", true) => return Err(format!("{text:?}: {name} is a link; write link {name}")),
        _ => return Err(wrong(text)),
    }
    let mut change = at_of(at, name)?;
    let mut is_empty = true;
    while let Some(key) = words.next() {
        let value = match key {
            "up" | "down" => "",
            _ => words
                .next()
                .ok_or_else(|| format!("{text:?}: {key} of how much?"))?,
        };
        set(&mut change, key, value)?;
        is_empty = false;
    }
    if is_empty {
        return Err(wrong(text));
    }
    Ok(change)
}

fn in_short(text: &str) -> Result<ChangeSpec, String> {
    let mut parts = text.splitn(3, ':');
    let (Some(at), Some(name), Some(properties)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong(text));
    };
    if name.is_empty() {
        return Err(wrong(text));
    }
    let mut change = at_of(at, name)?;
    for property in properties.split(',') {
        let (key, value) = property.split_once('=').unwrap_or((property, ""));
        set(&mut change, key, value)?;
    }
    Ok(change)
}

fn at_of(at: &str, name: &str) -> Result<ChangeSpec, String> {
    Ok(ChangeSpec {
        at_ns: parse_duration_ns(at)?,
        target: name.to_owned(),
        ..ChangeSpec::default()
    })
}

fn set(change: &mut ChangeSpec, key: &str, value: &str) -> Result<(), String> {
    let twice = match (key, value) {
        ("down", "") => change.up.replace(false).is_some(),
        ("up", "") => change.up.replace(true).is_some(),
        ("rate", value) => match parse_share(value)? {
            Some(share) => change.rate_ppm.replace(share).is_some() || change.rate_bps.is_some(),
            None => {
                let rate = parse_link_rate(value)?;
                change.rate_bps.replace(rate).is_some() || change.rate_ppm.is_some()
            }
        },
        ("delay", value) => change.delay_ns.replace(parse_delay(value)?).is_some(),
        ("queue", value) => change.queue_packets.replace(parse_queue(value)?).is_some(),
        ("loss", value) => change.loss_ppm.replace(parse_loss(value)?).is_some(),
        _ => {
            return Err(format!(
                "{key:?}: links have rate, delay, queue and loss, or are down or up"
            ));
        }
    };
    if twice {
        return Err(format!("{key:?}: this is said already"));
    }
    Ok(())
}

/// A share of a rate in a million, of `0.5` or `50%`; `None` for what has another unit.
fn parse_share(text: &str) -> Result<Option<u64>, String> {
    let ppm = if text.ends_with('%') {
        f64::from(parse_share_ppm(text)?)
    } else {
        match text.parse::<f64>() {
            Ok(share) => share * 1e6,
            Err(_) => return Ok(None),
        }
    };
    if !(1.0..=1e6).contains(&ppm) {
        return Err(format!(
            "rate {text}: a share is above 0 and at most 1, such as 0.5; a rate has a unit, such \
             as 10mbit"
        ));
    }
    Ok(Some(ppm.round() as u64))
}

#[cfg(test)]
mod tests {
    use weft_lab::HostsSpec;

    use super::*;

    #[test]
    fn a_change_names_its_time_its_spine_and_what_becomes_of_its_links() {
        let change = parse_change("1.5s:2:rate=10mbit,delay=50ms,queue=30,loss=0.1%").unwrap();
        let expected = ChangeSpec {
            at_ns: 1_500_000_000,
            target: "2".to_owned(),
            rate_bps: Some(10_000_000),
            delay_ns: Some(50_000_000),
            queue_packets: Some(30),
            loss_ppm: Some(1_000),
            ..ChangeSpec::default()
        };
        assert_eq!(change, expected);
        assert_eq!(parse_change("0s:1:down").unwrap().up, Some(false));
        assert_eq!(parse_change("1us:1:up,loss=0%").unwrap().up, Some(true));
    }

    #[test]
    fn a_change_in_words_is_the_same_change() {
        for (words, short) in [
            ("at 20ms link leaf1-spine2 down", "20ms:leaf1-spine2:down"),
            (
                "at 2s switch core1 rate 0.5 loss 1%",
                "2s:core1:rate=0.5,loss=1%",
            ),
            (
                " at 1s link agg1_1-core1 rate 10mbit delay 1ms queue 20",
                "1s:agg1_1-core1:rate=10mbit,delay=1ms,queue=20",
            ),
        ] {
            assert_eq!(parse_change(words), parse_change(short), "{words}");
        }
        let half = parse_change("at 2s switch core1 rate 50%").unwrap();
        assert_eq!((half.rate_ppm, half.rate_bps), (Some(500_000), None));
    }

    #[test]
    fn a_wrong_change_is_told_what_would_be_right() {
        for (text, said) in [
            ("2s:1", "2s:spine1:rate=10mbit"),
            ("2:1:down", "10us or 1ms"),
            ("2s::down", "2s:spine1:rate"),
            ("2s:1:", "are down or up"),
            ("2s:1:speed=3", "are down or up"),
            ("2s:1:rate=fast", "write 1gbit"),
            ("2s:1:rate=2", "at most 1, such as 0.5"),
            ("2s:1:rate=0", "at most 1, such as 0.5"),
            ("2s:1:down,up", "said already"),
            ("2s:1:rate=0.5,rate=1mbit", "said already"),
            ("2s:1:loss=0.1", "write 1%"),
            ("at 20ms", "at 20ms link leaf1-spine2 down"),
            (
                "at 20ms link leaf1-spine2",
                "at 20ms link leaf1-spine2 down",
            ),
            ("at 20ms link spine2 down", "such as leaf1-spine2"),
            (
                "at 20ms switch leaf1-spine2 down",
                "write link leaf1-spine2",
            ),
            ("at 20ms host h1_1 down", "at 20ms link leaf1-spine2 down"),
            ("at 20ms switch spine1 loss", "loss of how much?"),
            ("at 20ms switch spine1 broken 1", "are down or up"),
        ] {
            let error = parse_change(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn changes_come_in_the_order_of_time_and_of_what_there_is() {
        let check = |texts: &[&str], spines| {
            let changes: Vec<_> = texts
                .iter()
                .map(|text| parse_change(text).unwrap())
                .collect();
            let shape = Shape::LeafSpine {
                leaves: 2,
                spines,
                hosts: HostsSpec::Same(1),
            };
            super::check(&changes, &shape)
        };
        let checked = check(&["2s:1:up", "1s:2:down", "3s:leaf1-spine2:down"], 2).unwrap();
        let targets: Vec<_> = checked.iter().map(|c| &*c.target).collect();
        assert_eq!(targets, ["spine2", "spine1", "leaf1-spine2"]);
        for (text, said) in [
            ("1s:2:down", "there are leaf1 to leaf2 and spine1 to spine1"),
            ("1s:leaf1-spine2:down", "such as leaf1-spine1 or h1_1-leaf1"),
            ("1s:h1_1-leaf1:rate=0.5", "a link to a host has loss"),
        ] {
            let error = check(&[text], 1).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(check(&["1s:h1_1-leaf1:loss=1%"], 1).is_ok());
    }
}
