//! What becomes of spines while traffic runs: `--change 2s:1:rate=10mbit`.

use weft_lab::ChangeSpec;

use super::spine::{check_spine, parse_spine};
use super::{parse_delay, parse_duration_ns, parse_link_rate, parse_loss, parse_queue};

/// One `--change`.
pub type Change = ChangeSpec;

/// Checks the changes for a fabric of so many spines, and puts them in order.
///
/// # Errors
/// One line that names the flag.
pub fn check(changes: &[Change], spines: u8) -> Result<Vec<ChangeSpec>, String> {
    for change in changes {
        check_spine("--change", change.spine, spines)?;
    }
    let mut changes = changes.to_vec();
    changes.sort_by_key(|change| change.at_ns);
    Ok(changes)
}

/// A change from `TIME:SPINE:KEY=VALUE[,KEY=VALUE]`.
///
/// # Errors
/// One line that says what a change looks like.
pub fn parse_change(text: &str) -> Result<Change, String> {
    let wrong = || {
        format!("{text:?} is no TIME:SPINE:CHANGE; write 2s:1:rate=10mbit,delay=50ms or 2s:1:down")
    };
    let mut parts = text.splitn(3, ':');
    let (Some(at), Some(spine), Some(properties)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    let mut change = Change {
        at_ns: parse_duration_ns(at)?,
        spine: parse_spine(spine).ok_or_else(wrong)?,
        ..Change::default()
    };
    for property in properties.split(',') {
        set(&mut change, property)?;
    }
    Ok(change)
}

fn set(change: &mut Change, property: &str) -> Result<(), String> {
    let (key, value) = property.split_once('=').unwrap_or((property, ""));
    let twice = match (key, value) {
        ("down", "") => change.up.replace(false).is_some(),
        ("up", "") => change.up.replace(true).is_some(),
        ("rate", value) => change.rate_bps.replace(parse_link_rate(value)?).is_some(),
        ("delay", value) => change.delay_ns.replace(parse_delay(value)?).is_some(),
        ("queue", value) => change.queue_packets.replace(parse_queue(value)?).is_some(),
        ("loss", value) => change.loss_ppm.replace(parse_loss(value)?).is_some(),
        _ => {
            return Err(format!(
                "{property:?}: links have rate=, delay=, queue= and loss=, or are down or up"
            ));
        }
    };
    if twice {
        return Err(format!("{property:?}: this is said already"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_its_time_its_spine_and_what_becomes_of_its_links() {
        let change = parse_change("1.5s:2:rate=10mbit,delay=50ms,queue=30,loss=0.1%").unwrap();
        let expected = Change {
            at_ns: 1_500_000_000,
            spine: 2,
            rate_bps: Some(10_000_000),
            delay_ns: Some(50_000_000),
            queue_packets: Some(30),
            loss_ppm: Some(1_000),
            up: None,
        };
        assert_eq!(change, expected);
        assert_eq!(parse_change("0s:1:down").unwrap().up, Some(false));
        assert_eq!(parse_change("1us:1:up,loss=0%").unwrap().up, Some(true));
    }

    #[test]
    fn a_wrong_change_is_told_what_would_be_right() {
        for (text, said) in [
            ("2s:1", "write 2s:1:rate=10mbit"),
            ("2:1:down", "10us or 1ms"),
            ("2s:0:down", "2s:1:down"),
            ("2s:1:", "are down or up"),
            ("2s:1:speed=3", "are down or up"),
            ("2s:1:rate=fast", "write 1gbit"),
            ("2s:1:down,up", "said already"),
            ("2s:1:loss=0.1", "write 1%"),
        ] {
            let error = parse_change(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn changes_come_in_the_order_of_time_and_of_spines_that_there_are() {
        let changes = ["2s:1:up", "1s:2:down"].map(|text| parse_change(text).unwrap());
        let checked = check(&changes, 2).unwrap();
        assert_eq!(checked.iter().map(|c| c.spine).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(
            check(&changes, 1).unwrap_err(),
            "--change names spine 2; with --spines 1 there are 1 to 1"
        );
    }
}
