// SPDX-License-Identifier: Apache-2.0

//! What `weft` says to those who ask for something wrong, or for a lab that
//! is not there.

#![allow(clippy::unwrap_used)]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

/// `weft` of a user who has no lab, nor anything built for one.
fn weft(line: &str) -> Output {
    weft_to(Stdio::piped(), line)
}

fn weft_to(stdout: Stdio, line: &str) -> Output {
    let nowhere = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(line.split_whitespace())
        .env("WEFT_RUNTIME_DIR", nowhere.path())
        .env("WEFT_CACHE", nowhere.path())
        .env_remove("WEFT_LAB")
        .current_dir(nowhere.path())
        .stdout(stdout)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn wrong_input_is_one_line_that_names_the_remedy_and_status_2() {
    for (line, remedy) in [
        ("", "weft --help"),
        ("topo", "weft topo --help"),
        ("tpo up", "weft --help"),
        ("topo up --rate 5", "write 1gbit"),
        ("topo up --delay 10", "write 10us"),
        ("topo up --spine-delay 40us", "write 2=40us"),
        ("topo up --spine-delay 5=40us", "there are 1 to 2"),
        ("topo up --leaves 0", "1..=250"),
        ("topo up --memory 1KB", "such as 2GiB"),
        ("run --workload webserach", "websearch, datamining"),
        ("run --load 30", "such as 0.3"),
        ("run --flows 0", "at least 1"),
        ("run --bytes 5", "--traffic incast"),
        ("run --traffic incast --load 0.3", "--traffic random"),
        (
            "run --pattern incast",
            "now called --traffic, such as --traffic incast;",
        ),
        ("compare --pattern=incast", "now called --traffic"),
        ("run --routing weft", "now called --routing subflow"),
        ("run --module none.ko", "No such file"),
        ("run --programs .", "p4/compile makes them"),
        ("run --send-buffer 64", "such as 65536"),
        ("run --congestion re/no", "such as cubic"),
        ("run --sheduler rb", "'--scheduler'"),
        ("run --leaves 1", "at least 2"),
        ("run --topology ring", "leaf-spine"),
        ("run --out .", "remove it or choose another name"),
        ("compare --schedulers rb,rb", "once is enough"),
        ("compare --scheduler rb", "'--schedulers'"),
        (
            "topo up --congestion=dctcp",
            "weft topo up has no --congestion; weft workload, weft run and weft compare have it; see",
        ),
        (
            "patterns --load 0.3",
            "weft patterns has no --load; weft workload, weft run",
        ),
        ("run --load abc", "write a number, such as 0.5"),
        ("run --flows 1e9", "write a whole number, such as 3"),
        ("workload --seed x", "weft workload --help"),
        ("explain h1_1", "<DST>"),
        ("flows --host", "a value is required"),
        ("report", "<DIR>"),
    ] {
        let output = weft(line);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "weft {line}: {said}");
        assert_eq!(said.lines().count(), 1, "weft {line}: {said}");
        assert!(!said.contains("os error"), "weft {line}: {said}");
        assert!(said.starts_with("weft: "), "weft {line}: {said}");
        assert!(said.contains(remedy), "weft {line}: {said}");
        assert!(output.stdout.is_empty(), "weft {line}");
    }
}

#[test]
fn without_a_lab_every_question_gets_the_same_line() {
    for line in [
        "patterns",
        "patterns --json",
        "patterns --history",
        "explain h1_1 h2_1",
        "paths",
        "telemetry",
        "flows",
        "shell",
        "topo status",
        "workload",
    ] {
        let output = weft(line);
        assert_eq!(output.status.code(), Some(1), "weft {line}");
        assert_eq!(
            said(&output),
            "weft: lab lab is not up; start it with `weft topo up`\n",
            "weft {line}"
        );
    }
}

#[test]
fn stopping_what_is_not_up_is_no_failure() {
    let output = weft("topo down");
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "lab lab is not up\n"
    );
}

#[test]
fn a_machine_without_the_lab_kernel_is_told_how_to_get_it() {
    for line in ["topo up", "run", "compare"] {
        let output = weft(line);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "weft {line}: {said}");
        assert!(said.contains("run `make kernel`"), "weft {line}: {said}");
    }
}

#[test]
fn every_command_explains_itself() {
    let mut commands = vec![String::new()];
    let mut explained = 0;
    while let Some(command) = commands.pop() {
        let output = weft(&format!("{command} --help"));
        assert!(output.status.success(), "weft {command} --help");
        assert!(said(&output).is_empty(), "weft {command} --help");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains(&format!("Usage: weft{command}")),
            "weft {command} --help"
        );
        let listed = text
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help");
        commands.extend(listed.map(|name| format!("{command} {name}")));
        explained += 1;
    }
    assert!(explained > 15, "{explained}");
}

#[test]
fn a_reader_that_has_had_enough_of_the_help_is_no_failure() {
    for line in ["--help", "run --help", "--version"] {
        let (reader, writer) = UnixStream::pair().unwrap();
        drop(reader);
        let output = weft_to(OwnedFd::from(writer).into(), line);
        assert!(output.status.success(), "weft {line}: {}", output.status);
        assert_eq!(said(&output), "", "weft {line}");
    }
}
