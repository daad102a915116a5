// SPDX-License-Identifier: Apache-2.0

//! Labs from their start to their end, with the real lab kernel and a script in
//! place of the network.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_weft-lab");
const READY: &str = "echo '{}' > /run/weft/ready; exec sleep 1000000";

/// A user with labs of their own.
struct User {
    home: tempfile::TempDir,
    kernel: Value,
}

impl User {
    fn new() -> Self {
        let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let built = Command::new("python3")
            .arg(repo.join("topology/lab/kernel/build.py"))
            .arg("--json")
            .output()
            .unwrap();
        assert!(built.status.success(), "build the lab kernel: {built:?}");
        Self {
            home: tempfile::Builder::new()
                .prefix("wl")
                .tempdir_in("/tmp")
                .unwrap(),
            kernel: serde_json::from_slice(&built.stdout).unwrap(),
        }
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(BINARY)
            .args(arguments)
            .current_dir(self.home.path())
            .env("WEFT_RUNTIME_DIR", self.labs())
            .env("WEFT_CACHE", self.home.path().join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that fails early does not read it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    fn labs(&self) -> PathBuf {
        self.home.path().join("labs")
    }

    /// Writes a description whose network is a shell script.
    fn describes(&self, network: &str, batch: Option<&str>) -> String {
        let dir = self.home.path().join("stub");
        fs::create_dir_all(&dir).unwrap();
        let script = dir.join("python");
        fs::write(&script, format!("#!/bin/sh\n{network}\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let spec = json!({
            "topology": {
                "kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts": 1,
                "rate_bps": 1, "host_rate_bps": 1, "delay_ns": 1, "queue_packets": 1,
                "routing": "subflow", "spine_delay_ns": {},
            },
            "pattern_ttl_ns": 1,
            "seed": 1,
            "clock": "paced",
            "paths": {
                "repo": self.home.path(),
                "bin": Path::new(BINARY).parent().unwrap(),
                "python": script,
                "kernel": self.kernel["kernel"],
                "modules": self.kernel["modules"],
                "programs": [self.home.path()],
            },
            "batch": batch.map(|shell| json!({"argv": ["/bin/sh", "-c", shell]})),
        });
        fs::write(self.home.path().join("spec.json"), spec.to_string()).unwrap();
        "spec.json".into()
    }

    fn status(&self) -> Value {
        let output = self.run(&["status"], "");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if self.labs().exists() {
            self.run(&["down"], "");
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A process that was told to end takes a moment.
fn soon(is_so: impl Fn() -> bool) {
    let so = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_so()
    });
    assert!(so);
}

#[test]
fn a_lab_runs_commands_and_leaves_nothing_behind() {
    let user = User::new();
    let spec = user.describes(READY, None);
    let up = user.run(&["up", &spec], "");
    assert!(up.status.success(), "{up:?}");
    let again = user.run(&["up", &spec], "");
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("already up"), "{again:?}");

    let shell = "cat; echo oops >&2; exit 7";
    let exec = user.run(&["exec", "--", "sh", "-c", shell], "from outside\n");
    assert_eq!(exec.status.code(), Some(7));
    assert_eq!(text(&exec.stdout), "from outside\n");
    assert_eq!(text(&exec.stderr), "oops\n");
    let missing = user.run(&["exec", "--host", "h9_9", "--", "true"], "");
    assert!(
        text(&missing.stderr).contains("no host h9_9"),
        "{missing:?}"
    );
    let write = user.run(&["exec", "--", "touch", "/etc/weft"], "");
    assert!(
        !write.status.success(),
        "the machine's files take no writes"
    );

    let pid = user.status()["pid"].to_string();
    let down = user.run(&["down"], "");
    assert!(down.status.success(), "{down:?}");
    assert!(!user.labs().exists());
    soon(|| {
        let process = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        process.is_empty() || process.contains(") Z ")
    });
}

#[test]
fn much_input_and_output_passes_whole() {
    let user = User::new();
    let spec = user.describes(READY, None);
    assert!(user.run(&["up", &spec], "").status.success());
    let input: String = (0..30_000).map(|line| format!("{line}\n")).collect();
    let echoed = user.run(&["exec", "--", "cat"], &input);
    assert_eq!(text(&echoed.stdout), input);
}

#[test]
fn a_paused_lab_stands_still_and_goes_on() {
    let user = User::new();
    let spec = user.describes(READY, None);
    assert!(user.run(&["up", &spec], "").status.success());
    assert!(user.run(&["clock", "paused"], "").status.success());
    std::thread::sleep(std::time::Duration::from_millis(50));
    let before = user.status();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(user.status()["virtual_ns"], before["virtual_ns"]);
    assert_eq!(before["clock"], "paused");
    assert!(user.run(&["clock", "2.5"], "").status.success());
    let slept = user.run(&["exec", "--", "sleep", "0.1"], "");
    assert!(slept.status.success(), "{slept:?}");
}

#[test]
fn a_network_that_fails_is_said_with_the_logs_kept() {
    let user = User::new();
    let network = "echo 'leaf9: no such switch' > /run/weft/failed; exit 1";
    let spec = user.describes(network, None);
    let up = user.run(&["up", &spec], "");
    assert_eq!(up.status.code(), Some(1));
    let said = text(&up.stderr);
    assert!(said.contains("leaf9: no such switch"), "{said}");
    let logs = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("logs: "));
    assert!(
        Path::new(logs.unwrap()).join("console.log").exists(),
        "{said}"
    );
    assert!(!user.labs().exists());
}

#[test]
fn a_boot_that_hangs_ends() {
    let user = User::new();
    let spec = user.describes("exec sleep 1000000000", None);
    let up = user.run(&["up", &spec, "--stall-seconds", "1"], "");
    assert_eq!(up.status.code(), Some(1));
    assert!(text(&up.stderr).contains("hangs"), "{up:?}");
    assert!(!user.labs().exists());
}

#[test]
fn a_crashed_launcher_takes_its_lab_along() {
    let user = User::new();
    let spec = user.describes(READY, None);
    assert!(user.run(&["up", &spec], "").status.success());
    let pid = user.status()["pid"].as_i64().unwrap();
    let killed = Command::new("kill").arg("-9").arg(pid.to_string()).status();
    assert!(killed.unwrap().success());
    soon(|| {
        let gone = user.run(&["status"], "");
        assert!(text(&gone.stderr).contains("is not up"), "{gone:?}");
        !user.labs().exists()
    });
    assert!(user.run(&["up", &spec], "").status.success());
}

#[test]
fn a_batch_gives_the_same_bytes_every_time() {
    let user = User::new();
    let shell = "date +%s.%N > when; head -c 64 /dev/urandom > random; sleep 3; \
                 date +%s.%N >> when; exit 5";
    let spec = user.describes(READY, Some(shell));
    let results = ["one", "two"].map(|out| {
        let batch = user.run(&["batch", &spec, "--out", out], "");
        assert_eq!(batch.status.code(), Some(5), "{batch:?}");
        let out = user.home.path().join(out);
        assert!(!out.join("ready").exists());
        ["when", "random"].map(|name| fs::read(out.join(name)).unwrap())
    });
    assert_eq!(results[0], results[1]);
    assert!(!user.labs().exists());
}

#[test]
fn a_plain_lab_runs_a_command_without_a_network() {
    let user = User::new();
    let shell = "cat /proc/cmdline > line; cat <(echo pipe) > pipe; cat there/file > needed; \
                 cat /proc/sys/net/mptcp/available_schedulers > schedulers";
    let name = user.describes("exit 1", Some(shell));
    let path = user.home.path().join(&name);
    let there = user.home.path().join("there");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("file"), "mine").unwrap();
    let mut spec: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    spec["topology"] = Value::Null;
    spec["kernel_arguments"] = json!(["slab_debug=FZPU"]);
    let shell = shell.replace("there/file", there.join("file").to_str().unwrap());
    spec["batch"] = json!({"argv": ["/bin/bash", "-c", shell], "needs": [there]});
    fs::write(&path, spec.to_string()).unwrap();
    let batch = user.run(&["batch", &name, "--out", "out"], "");
    assert!(batch.status.success(), "{batch:?}");
    let wrote = |name| fs::read_to_string(user.home.path().join("out").join(name)).unwrap();
    assert!(wrote("line").contains(" slab_debug=FZPU "));
    assert_eq!(wrote("pipe"), "pipe\n");
    assert_eq!(wrote("needed"), "mine");
    assert!(wrote("schedulers").contains(" rb"));
}
