// SPDX-License-Identifier: Apache-2.0

//! Lists the MPTCP schedulers of Weft's kernel module, for help texts: each file of
//! `host/kernel` that defines one has its name in a `struct mptcp_sched_ops`.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/kernel");
    // A new one is in this list of objects.
    println!(
        "cargo:rerun-if-changed={}",
        sources.join("Kbuild").display()
    );
    let mut names = vec!["default".to_owned()];
    for entry in fs::read_dir(&sources)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            println!("cargo:rerun-if-changed={}", path.display());
            names.extend(schedulers(&fs::read_to_string(&path)?));
        }
    }
    names.sort();
    let list = names.join(", ");
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&folder).join("schedulers"), list)
}

/// The `.name` of every `struct mptcp_sched_ops` of a C source.
fn schedulers(source: &str) -> Vec<String> {
    let definitions = source.split("struct mptcp_sched_ops ").skip(1);
    let bodies = definitions.filter_map(|text| text.split_once("= {")?.1.split_once('}'));
    bodies
        .filter_map(|(body, _)| {
            let (_, rest) = body.split_once(".name")?;
            let (_, rest) = rest.split_once('"')?;
            Some(rest.split_once('"')?.0.to_owned())
        })
        .collect()
}
