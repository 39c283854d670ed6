//! `ncmesh doctor --radio`: names what an interface costs in throughput, and types the commands.

use crate::failure::{Failure, Kind};
use crate::show;
use ncmesh_node::radio::survey::{Finding, Survey, Wifi, survey};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Runs the command for `interface`; without one, for those of the configuration `file`, and
/// without these, for all radios.
pub(crate) fn run(
    interface: Option<&str>,
    file: Option<&Path>,
    is_json: bool,
) -> Result<(), Failure> {
    let mut names = match interface {
        Some(name) => vec![name.to_owned()],
        None => file.map(configured).unwrap_or_default(),
    };
    if names.is_empty() {
        names = radios();
    }
    if names.is_empty() {
        let problem = "there is no radio here; name an interface: `ncmesh doctor --radio eth0`";
        return Err(Failure::new(Kind::Other, problem));
    }

    // An interface that is missing ends the command, even if others are there: the user or the
    // configuration named it.
    let mut all = Vec::new();
    for name in names {
        let seen = survey(&name).map_err(|e| {
            Failure::new(Kind::Other, format!("{name}: the kernel does not say: {e}"))
        });
        let problem = || {
            Failure::new(Kind::Other, format!("there is no interface {name}; `ip link` shows all"))
        };
        all.push(seen?.ok_or_else(problem)?);
    }

    if is_json {
        return show::json(&all.iter().map(as_json).collect::<Vec<_>>());
    }

    // Each finding is followed by the command that mends it, indented so that it can be copied.
    for survey in &all {
        show::line(&state(survey))?;
        let findings = survey.findings();
        if findings.is_empty() {
            show::line("  nothing costs throughput here")?;
        }
        for Finding { cost, command } in findings {
            show::line(&format!("- {cost}"))?;
            if let Some(command) = command {
                show::line(&format!("    {command}"))?;
            }
        }
    }
    Ok(())
}

/// Returns the interfaces of a configuration. The key in it is not looked at.
fn configured(file: &Path) -> Vec<String> {
    let text = ncmesh_engine::text::read(file).unwrap_or_default();
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let several = table.get("port").and_then(|port| port.as_array());
    let ports = table.get("radio").into_iter().chain(several.into_iter().flatten());
    ports.filter_map(|port| Some(port.get("interface")?.as_str()?.to_owned())).collect()
}

/// Returns the names of all radios.
fn radios() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let radios = entries.filter(|entry| entry.path().join("phy80211").exists());
    let mut names: Vec<String> =
        radios.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Returns the state of an interface, on one line.
fn state(survey: &Survey) -> String {
    let Survey { name, mtu, wifi, .. } = survey;
    let Some(Wifi { mode, frequency_mhz, width, saves_power, forwards }) = wifi else {
        return format!("{name}: no radio, MTU {mtu}");
    };

    // The kernel does not tell every value of every radio. Unknown parts are left out.
    let state = |is_on: bool| if is_on { "on" } else { "off" };
    let parts = [
        mode.map(|mode| mode.name().to_owned()),
        frequency_mhz.map(|mhz| format!("{mhz} MHz")),
        width.map(|width| width.name().to_owned()),
        forwards.map(|is_on| format!("forwarding {}", state(is_on))),
        saves_power.map(|is_on| format!("power save {}", state(is_on))),
        Some(format!("MTU {mtu}")),
    ];
    format!("{name}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn as_json(survey: &Survey) -> Value {
    let Survey { name, mtu, wifi, others } = survey;
    let wifi = wifi.map(|wifi| {
        json!({
            "mode": wifi.mode,
            "frequency_mhz": wifi.frequency_mhz,
            "width": wifi.width,
            "forwards": wifi.forwards,
            "saves_power": wifi.saves_power,
        })
    });
    let finding = |Finding { cost, command }| json!({ "cost": cost, "command": command });
    let findings: Vec<Value> = survey.findings().into_iter().map(finding).collect();
    let others: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
    json!({ "interface": name, "mtu": mtu, "wifi": wifi, "others": others, "findings": findings })
}
