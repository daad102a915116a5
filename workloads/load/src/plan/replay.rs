// SPDX-License-Identifier: Apache-2.0

//! Flows from a list: lines `source,destination,bytes,start_ns`, with host names.

use std::collections::BTreeMap;

use super::{Flow, PlanError};

/// A line of a flow list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Line number, from 1.
    pub line: usize,
    /// Name of the host that sends.
    pub source: String,
    /// Name of the host that receives.
    pub destination: String,
    /// Size.
    pub bytes: u64,
    /// Start time, from the start of the run.
    pub start_ns: u64,
}

/// The header, which is optional.
const HEADER: &str = "source,destination,bytes,start_ns";

/// Parses a list with one flow per line. Empty lines, lines that start with `#` and the
/// header are skipped.
///
/// # Errors
/// One line that names the wrong line and the right form.
pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for (line, content) in (1..).zip(text.lines().map(str::trim)) {
        if content.is_empty() || content.starts_with('#') || content == HEADER {
            continue;
        }
        let entry = parse_line(line, content).ok_or_else(|| {
            format!("line {line}: {content:?} is not `{HEADER}`, such as `h1_1,h2_1,20000,0`")
        })?;
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(format!("no flow in it; give lines `{HEADER}`"));
    }
    Ok(entries)
}

fn parse_line(line: usize, content: &str) -> Option<Entry> {
    let words: Vec<&str> = content.split(',').map(str::trim).collect();
    let [source, destination, bytes, start_ns] = words[..] else {
        return None;
    };
    let entry = Entry {
        line,
        source: source.to_owned(),
        destination: destination.to_owned(),
        bytes: bytes.parse().ok().filter(|bytes| *bytes > 0)?,
        start_ns: start_ns.parse().ok()?,
    };
    (!source.is_empty() && source != destination).then_some(entry)
}

/// The flows of a list between hosts with these `names`, ordered by start time.
///
/// # Errors
/// [`PlanError::NoHost`].
pub fn replay(entries: &[Entry], names: &[&str]) -> Result<Vec<Flow>, PlanError> {
    let places: BTreeMap<&str, usize> = names.iter().copied().zip(0..).collect();
    let find = |line: usize, name: &str| {
        places.get(name).copied().ok_or_else(|| PlanError::NoHost {
            line,
            name: name.to_owned(),
            example: names.first().copied().unwrap_or_default().to_owned(),
        })
    };
    let mut flows = entries
        .iter()
        .map(|entry| {
            Ok(Flow {
                source: find(entry.line, &entry.source)?,
                destination: find(entry.line, &entry.destination)?,
                bytes: entry.bytes,
                start_ns: entry.start_ns,
            })
        })
        .collect::<Result<Vec<Flow>, PlanError>>()?;
    flows.sort_by_key(|flow| flow.start_ns);
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_replayed_in_order_of_start() {
        let text = "source,destination,bytes,start_ns\n# two\nh2_1, h1_1, 7, 900\nh1_1,h2_1,5,0\n";
        let flows = replay(&parse(text).unwrap(), &["h1_1", "h2_1"]).unwrap();
        let seen: Vec<_> = flows
            .iter()
            .map(|f| (f.source, f.destination, f.bytes, f.start_ns))
            .collect();
        assert_eq!(seen, [(0, 1, 5, 0), (1, 0, 7, 900)]);
    }

    #[test]
    fn wrong_lines_are_named() {
        for wrong in ["h1_1,h2_1,5", "h1_1,h1_1,5,0", "h1_1,h2_1,0,0", "a,b,c,d"] {
            let error = parse(&format!("# flows\n{wrong}\n")).unwrap_err();
            assert!(error.starts_with("line 2: "), "{error}");
        }
        assert!(parse("\n").unwrap_err().starts_with("no flow in it"));
        let entries = parse("h1_1,h9_9,5,0").unwrap();
        let error = replay(&entries, &["h1_1"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "flow list, line 1: the topology has no host h9_9; there are h1_1, ..."
        );
    }
}
