// SPDX-License-Identifier: Apache-2.0

//! The controller and the kernel compute patterns from the same law: a host that
//! falls back to its own RTTs goes on as before.

#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rand::{Rng as _, SeedableRng as _};
use weft_controller::pattern::{PATHS_MAX, SEQUENCE_MAX, gaps, letters, sequence};

/// Reads lines of RTTs, writes the kernel's pattern for each.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include "pattern.h"

int main(void)
{
    char line[4096];

    while (fgets(line, sizeof(line), stdin)) {
        unsigned int n = 0, length, i;
        u64 rtt[WEFT_PATHS_MAX];
        u32 gap[WEFT_PATHS_MAX];
        u8 sequence[WEFT_SEQUENCE_MAX];
        char *at = line, *end;

        for (;; at = end) {
            rtt[n] = strtoull(at, &end, 10);
            if (end == at)
                break;
            n++;
        }
        weft_gaps(rtt, n, gap);
        length = weft_sequence(gap, n, sequence);
        for (i = 0; i < length; i++)
            putchar('A' + sequence[i]);
        putchar('\n');
    }
    return 0;
}
"#;

/// The kernel's patterns, computed by its own file in user space.
fn kernel_patterns(cases: &[Vec<u64>]) -> Vec<String> {
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/kernel");
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("main.c");
    std::fs::write(&main, MAIN).unwrap();
    let program = folder.path().join("patterns");
    let built = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(&kernel)
        .arg("-I")
        .arg(kernel.join("include/uapi"))
        .arg(&main)
        .arg(kernel.join("pattern.c"))
        .status()
        .unwrap();
    assert!(built.success(), "host/kernel/pattern.c does not compile");
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = cases
        .iter()
        .map(|rtts| rtts.iter().map(|rtt| format!("{rtt} ")).collect::<String>() + "\n")
        .collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_kernel_and_the_controller_agree() {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let mut cases = vec![
        vec![100, 200, 300, 500],
        vec![100, 100],
        vec![100, 400],
        vec![1, 1, 1, 1_000_000],
        vec![2, 3],
    ];
    for _ in 0..2000 {
        let paths = random.random_range(1..=8);
        let spread = random.random_range(2..100_000);
        let rtts = (0..paths).map(|_| 50_000 + random.random_range(0..spread) * 1_000);
        cases.push(rtts.collect());
    }
    let expected = kernel_patterns(&cases);
    assert_eq!(expected.len(), cases.len());
    for (rtts, kernel) in cases.iter().zip(expected) {
        assert_eq!(letters(&sequence(&gaps(rtts))), kernel, "RTTs {rtts:?}");
    }
}

#[test]
fn patterns_have_as_many_paths_and_positions_as_the_kernel_takes() {
    let header = include_str!("../../host/kernel/include/uapi/weft.h");
    let number = |name: &str| -> usize {
        let lines = header.lines().map(|line| line.split_whitespace());
        let mut values = lines.filter_map(|mut words| {
            let is_it = words.next() == Some("#define") && words.next() == Some(name);
            words.next().filter(|_| is_it)
        });
        values.next().unwrap().parse().unwrap()
    };
    assert_eq!(PATHS_MAX, number("WEFT_PATHS_MAX"));
    assert_eq!(SEQUENCE_MAX as usize, number("WEFT_SEQUENCE_MAX"));
}
