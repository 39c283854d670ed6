//! `ncmesh doctor`: collects what a report of a problem needs, without secrets.

use super::doctor_radio;
use crate::args::DoctorArgs;
use crate::client::Client;
use crate::failure::{Failure, Kind};
use crate::remote_args::Remote;
use crate::show;
use ncmesh_node::api::types::{Peer, Status, Transfer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Configuration of the daemon that the packages install.
const SYSTEM_CONFIG: &str = "/etc/ncmesh/node.toml";

/// Name of the service that the packages install.
const SERVICE: &str = "ncmesh";

/// Number of lines of the log that are shown.
const LOG_LINES: &str = "50";

/// Text in place of a secret.
const REMOVED: &str = "<removed>";

/// Hexadecimal digits in a row from which on they could be a key, or a good part of one.
const KEY_DIGITS: usize = 32;

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs, remote: &Remote) -> Result<(), Failure> {
    // Without `--config` the daemon is the installed one, if there is one.
    let system = PathBuf::from(SYSTEM_CONFIG);
    let config = remote.config.clone().or_else(|| Some(system).filter(|file| file.exists()));
    if args.radio {
        return doctor_radio::run(args.interface.as_deref(), config.as_deref(), remote.json);
    }

    // The daemon is the one that other commands find. If it does not answer, the report says so.
    let client = Client::new(remote);
    let sections = [
        ("version", Value::from(env!("CARGO_PKG_VERSION"))),
        ("system", system_state()),
        ("interfaces", interfaces()),
        ("configuration", config.as_deref().map_or(Value::Null, configuration)),
        ("status", ask::<Status>(&client, "/v1/status")),
        ("peers", ask::<Vec<Peer>>(&client, "/v1/peers")),
        ("transfers", ask::<Vec<Transfer>>(&client, "/v1/transfers")),
        ("log", log()),
    ];
    if remote.json {
        let all: Map<String, Value> =
            sections.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        return show::line(&without_keys(&pretty(&Value::Object(all))?));
    }

    show::note("read it before you send it: keys are removed, names and addresses are not");
    for (name, value) in sections {
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Null => "none".into(),
            other => pretty(other)?,
        };

        show::line(&without_keys(&format!("## {name}\n\n```\n{}\n```\n", text.trim_end())))?;
    }

    Ok(())
}

fn pretty(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|e| Failure::new(Kind::Other, e.to_string()))
}

/// Returns an answer of the daemon, or why there is none.
fn ask<T: DeserializeOwned + serde::Serialize>(
    client: &Result<Client, Failure>,
    path: &str,
) -> Value {
    // A part that cannot be had must not keep the others out of the report. It says why it is
    // absent.
    let answer = match client {
        Ok(client) => client.read::<T>(path),
        Err(failure) => return failure.message().into(),
    };

    match answer.map(|answer| serde_json::to_value(answer)) {
        Ok(Ok(value)) => value,
        Ok(Err(e)) => e.to_string().into(),
        Err(failure) => failure.message().into(),
    }
}

/// Returns distribution, kernel and processor of the machine.
fn system_state() -> Value {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let release = line("/etc/os-release");
    let named = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = named.unwrap_or("unknown").trim_matches('"');
    let kind = line("/proc/sys/kernel/ostype");
    let kernel = line("/proc/sys/kernel/osrelease");
    format!("{name}, {kind} {kernel}, {}", std::env::consts::ARCH).into()
}

/// Returns the state of each network interface, a line for each.
fn interfaces() -> Value {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut lines: Vec<String> = entries
        .map(|entry| {
            let path = entry.path();
            let line = |name: &str| {
                let text = fs::read_to_string(path.join(name)).unwrap_or_default();
                text.trim().to_owned()
            };

            let wireless = if path.join("phy80211").exists() { ", Wi-Fi" } else { "" };
            let name = entry.file_name().to_string_lossy().into_owned();
            let state = line("operstate");
            format!("{name}: {state}, mtu {}{wireless}", line("mtu"))
        })
        .collect();
    // The kernel lists them in no order. Sorted, two reports can be compared.
    lines.sort_unstable();
    lines.join("\n").into()
}

/// Returns a configuration without its secrets and comments, or why there is none.
fn configuration(file: &Path) -> Value {
    let shown = file.display();
    let text = match ncmesh_engine::text::read(file) {
        Ok(text) => text,
        Err(e) => return format!("{shown} cannot be read: {e}").into(),
    };

    // The text of a file that cannot be parsed is left out: it may have a key anywhere.
    match text.parse::<toml::Table>() {
        Ok(mut table) => {
            remove_secrets(&mut table);
            format!("# {shown}\n{table}").into()
        }
        Err(_) => format!("{shown} is not TOML: `ncmesh node --config {shown}` says where").into(),
    }
}

/// Replaces the values of settings that are secret, or may be.
fn remove_secrets(table: &mut toml::Table) {
    for (name, value) in table.iter_mut() {
        match value {
            toml::Value::Table(inner) => remove_secrets(inner),
            // Arguments of the hook may be passwords or tokens.
            toml::Value::Array(words) if name == "hook" => {
                words.iter_mut().skip(1).for_each(|argument| *argument = REMOVED.into());
            }
            toml::Value::Array(all) => {
                all.iter_mut().filter_map(toml::Value::as_table_mut).for_each(remove_secrets);
            }
            value if ["key", "token"].contains(&name.as_str()) => *value = REMOVED.into(),
            _ => {}
        }
    }
}

/// Returns the text without anything that could be a key.
fn without_keys(text: &str) -> String {
    // Hexadecimal digits in a row may be a key wherever they stand, in answers and in the log as
    // well.
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(from.len());
        let (digits, after) = from.split_at(end);
        safe.push_str(before);
        safe.push_str(if digits.len() >= KEY_DIGITS { REMOVED } else { digits });
        rest = after;
    }

    safe.push_str(rest);
    safe
}

/// Returns the last lines of the service's log, if there is a journal with one.
fn log() -> Value {
    let mut journal = Command::new("journalctl");
    journal.args(["--unit", SERVICE, "--lines", LOG_LINES, "--no-pager", "--output", "short-iso"]);
    // Without systemd, or without the rights to read the journal, the report has no log.
    match journal.stdin(Stdio::null()).stderr(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned().into()
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_could_be_a_key_is_removed() {
        let key = "0123456789abcdefABCDEF0123456789".repeat(2);
        assert_eq!(key.len(), 64);
        for text in
            [key.clone(), format!("key = \"{key}\""), format!("a{key}b"), format!("x {key}")]
        {
            let safe = without_keys(&text);
            assert!(safe.contains(REMOVED) && !safe.contains(&key[..16]), "{safe}");
        }
        let mut table =
            "[node]\nid = 3\nkey = \"short\"\n[inbox]\nhook = [\"put\", \"-p\", \"word\"]\n"
                .parse::<toml::Table>()
                .unwrap();
        remove_secrets(&mut table);
        let text = table.to_string();
        assert!(text.contains("id = 3") && text.contains("put"), "{text}");
        assert!(!text.contains("short") && !text.contains("word"), "{text}");
        let harmless = "3-09ab12ff, 10.0.0.1, é, face";
        assert_eq!(without_keys(harmless), harmless);
    }
}
