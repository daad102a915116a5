// SPDX-License-Identifier: Apache-2.0

//! The variables on make's command line are flags, and the Makefile lists none of them.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The checkout.
fn root() -> PathBuf {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR"));
    cli.ancestors().nth(2).unwrap().to_owned()
}

/// This `weft`, from the checkout: make takes no path with a space in it.
fn weft() -> &'static str {
    let program = Path::new(env!("CARGO_BIN_EXE_weft"));
    program
        .strip_prefix(root())
        .unwrap_or(program)
        .to_str()
        .unwrap()
}

/// `make` in the checkout, with this `weft` and no variable of the caller's.
fn make(words: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new("make");
    command.arg("--no-print-directory");
    command.arg(format!("WEFT={}", weft()));
    command.args(words);
    command.current_dir(root());
    command.env_clear();
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.envs(environment.iter().copied());
    command.output().unwrap()
}

/// The last command that make would run with `words`, without the program that it calls.
fn recipe(words: &[&str], environment: &[(&str, &str)]) -> String {
    let output = make(&[&["-n"], words].concat(), environment);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "make {words:?}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let command = text.lines().last().unwrap_or_default();
    let command = command.strip_prefix(weft()).unwrap_or(command);
    let words: Vec<_> = command.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn variables_become_the_flags_of_their_names() {
    for (words, command) in [
        (&["workload"][..], "workload"),
        (&["run", "HOST_RATE=10gbit"], "run --host-rate '10gbit'"),
        (&["topo", "LEAVES=4"], "topo up --leaves '4'"),
        (&["topo", "NO_SUCH=x"], "topo up --no-such 'x'"),
        (
            &["compare", "SCHEDULERS=rb,weft", "JOBS=2"],
            "compare --jobs '2' --schedulers 'rb,weft'",
        ),
        (
            &["run", "CHANGE=at 20ms link leaf1-spine2 down"],
            "run --change 'at 20ms link leaf1-spine2 down'",
        ),
        (
            &["run", "OUT=it's \"here\" $x"],
            r#"run --out 'it'\''s "here" $x'"#,
        ),
        (
            &["patterns", "JSON=1", "HISTORY=1"],
            "patterns --history --json",
        ),
        (
            &["flows", "NAME=x", "SUBFLOWS=1", "JSON="],
            "flows --name 'x' --subflows",
        ),
        (&["run", "SUBFLOWS=2"], "run --subflows '2'"),
        (
            &["run", "SEED=3", "ARGS=--leaves 4 --k 2"],
            "run --seed '3' --leaves 4 --k 2",
        ),
        (
            &["run", "KERNEL_SRC=/linux", "WEFT_CACHE=/cache", "CARGO=x"],
            "run",
        ),
    ] {
        assert_eq!(recipe(words, &[]), command, "make {words:?}");
    }
}

#[test]
fn what_a_target_uses_otherwise_is_no_flag_of_it() {
    for (words, command) in [
        (
            &["explain", "SRC=h1_1", "DST=h2_1"][..],
            "explain 'h1_1' 'h2_1'",
        ),
        (
            &["evidence", "RUN=runs/a b", "PACKETS=1"],
            "evidence --packets 'runs/a b'",
        ),
        (
            &["experiment", "FILE=a.toml", "PLAN=1", "OUT=runs/x"],
            "experiment --out 'runs/x' --plan 'a.toml'",
        ),
        (&["report", "DIR=runs/x"], "report 'runs/x'"),
        (
            &["test-fresh", "DEBIAN=13", "UNTIL=make down"],
            "tests/fresh --debian '13' --until 'make down'",
        ),
        (
            &["scenario", "SCENARIO=rb-fig13", "QUICK=1"],
            ".venv/bin/python -m weft_scenarios run --quick rb-fig13",
        ),
        (
            &["speed", "WHAT=websearch packet", "JSON=x.json"],
            ".venv/bin/python tests/speed --json 'x.json' websearch packet",
        ),
    ] {
        assert_eq!(recipe(words, &[]), command, "make {words:?}");
    }
}

#[test]
fn the_environment_gives_no_flags() {
    let environment = [("CHECK", "1"), ("LEAVES", "4"), ("PLAN", "1")];
    assert_eq!(recipe(&["run"], &environment), "run");
    let words = ["experiment", "FILE=a.toml"];
    assert_eq!(recipe(&words, &environment), "experiment 'a.toml'");
    let unsaid = make(&["report", "-o", "deps"], &[("DIR", "runs")]);
    assert_eq!(unsaid.status.code(), Some(2));
}

#[test]
fn a_variable_that_is_no_flag_is_refused_by_the_program() {
    let output = make(&["status", "LEAVES=4"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("status has no --leaves"), "{said}");
}

#[test]
fn help_says_where_the_flags_are_explained() {
    let output = make(&["help"], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.ends_with("run --help\n"), "{text}");
}
