//! Costs of an interface in throughput, and the commands that change them.

use super::nl80211;
pub use super::nl80211::{Mode, Width};
use super::watch::Watch;
use std::fs;
use std::io;
use std::path::Path;

/// Programs that run other meshes.
const MESH_PROGRAMS: [&str; 6] = ["babeld", "batmand", "bmx6", "bmx7", "olsrd", "olsrd2"];
/// Least MTU that a frame of the default length fits, with UDP and IPv4 around it, bytes.
const WHOLE_MTU: usize = 1500;

/// State of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Its name.
    pub name: String,
    /// Length of its longest packet, bytes.
    pub mtu: usize,
    /// Its radio, if it is one.
    pub wifi: Option<Wifi>,
    /// Other mesh software that uses it.
    pub others: Vec<Other>,
}

/// Other mesh software.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// Whether it is known to use the interface: its arguments may leave that to a file.
    pub is_certain: bool,
}

/// State of a radio, as far as the kernel tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wifi {
    /// Type of the interface.
    pub mode: Option<Mode>,
    /// Frequency of its channel.
    pub frequency_mhz: Option<u32>,
    /// Width of its channel.
    pub width: Option<Width>,
    /// Whether a mesh interface forwards by itself.
    pub forwards: Option<bool>,
    /// Whether it sleeps while it has nothing to send.
    pub saves_power: Option<bool>,
}

/// Something that costs throughput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The cost, and its cause.
    pub cost: String,
    /// Command that changes it, if one does.
    pub command: Option<String>,
}

/// Looks at the interface `name`. `None` if there is none.
///
/// # Errors
/// The kernel does not answer.
pub fn survey(name: &str) -> io::Result<Option<Survey>> {
    let interface = Watch::look(name)?;
    let Some(index) = interface.index() else { return Ok(None) };
    let wifi = nl80211::channel(index).map(|channel| Wifi {
        mode: channel.mode,
        frequency_mhz: channel.frequency_mhz,
        width: channel.width,
        forwards: nl80211::forwards(index),
        saves_power: nl80211::saves_power(index),
    });
    let batman = Other { name: "batman-adv".into(), is_certain: true };
    let batman = interface.is_of_batman().then_some(batman);
    let others = batman.into_iter().chain(programs(interface.name())).collect();
    Ok(Some(Survey { name: interface.name().into(), mtu: interface.mtu(), wifi, others }))
}

impl Survey {
    /// Returns what costs throughput, the dearest first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let Self { name, mtu, wifi, others } = self;
        let mut all = Vec::new();
        let mut found = |cost: &str, command: Option<String>| {
            all.push(Finding { cost: cost.into(), command });
        };
        // Without Wi-Fi all questions about it have no answer.
        let wifi = wifi.unwrap_or_default();
        let mode = wifi.mode;

        // In these modes stations hear each other through an access point, or not at all.
        if matches!(mode, Some(Mode::Station | Mode::AccessPoint | Mode::Monitor)) {
            found(
                "nodes hear each other only in ad-hoc or mesh mode",
                Some(format!(
                    "ip link set {name} down; iw dev {name} set type ibss; ip link set {name} up; \
                     iw dev {name} ibss join NAME 2412 NOHT"
                )),
            );
        }

        if matches!(mode, Some(Mode::AdHoc | Mode::Mesh)) && wifi.frequency_mhz.is_none() {
            found(
                "it has joined no cell or mesh, so it has no channel",
                Some(match mode {
                    Some(Mode::Mesh) => format!("iw dev {name} mesh join NAME freq 2412"),
                    _ => format!("iw dev {name} ibss join NAME 2412 NOHT"),
                }),
            );
        }

        if matches!(mode, Some(Mode::AdHoc | Mode::Mesh)) {
            // The kernel does not tell the rate that is set.
            found(
                "broadcasts go out at the lowest rate of the band unless another one was set, and \
                 coded data is broadcast",
                Some(format!("iw dev {name} set mcast_rate 24")),
            );
        }

        if wifi.forwards == Some(true) {
            found(
                "it forwards frames by itself, so that every node of the mesh looks like a \
                 neighbour",
                Some(format!("iw dev {name} set mesh_param mesh_fwding 0")),
            );
        }
        // Block acknowledgment keeps numbers by neighbour, even while it is away.
        let has_ht = wifi.width.is_some_and(|width| width != Width::NoHt);
        if mode == Some(Mode::AdHoc) && has_ht {
            let frequency = wifi.frequency_mhz.unwrap_or(2412);
            found(
                "with HT in ad-hoc mode, unicast frames of a neighbour that was away are dropped \
                 until their numbers have caught up",
                Some(format!(
                    "iw dev {name} ibss leave; iw dev {name} ibss join NAME {frequency} NOHT"
                )),
            );
        }

        if wifi.saves_power == Some(true) {
            found(
                "it sleeps while it has nothing to send, and misses frames meanwhile",
                Some(format!("iw dev {name} set power_save off")),
            );
        }
        // Nodes with a shorter MTU cannot take the frames of the others.
        if *mtu < WHOLE_MTU {
            found(
                &format!("its MTU is {mtu}, so frames are shorter than others have them"),
                Some(format!("ip link set {name} mtu {WHOLE_MTU}")),
            );
        }

        // Other programs come last: what they cost depends on their traffic.
        for Other { name: other, is_certain } in others {
            let uses = if *is_certain { "uses it too" } else { "runs here and may use it too" };
            found(&format!("{other} {uses}, and takes a part of its channel"), None);
        }
        all
    }
}

/// Returns the mesh programs in this network namespace that have the interface, or none at all,
/// among their arguments.
fn programs(name: &str) -> Vec<Other> {
    // Programs in other namespaces, such as containers, have other interfaces of the same name.
    let namespace = |process: &Path| fs::read_link(process.join("ns/net")).ok();
    let own = namespace(Path::new("/proc/self"));
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_interface = |argument: &[u8]| {
        let name = std::str::from_utf8(argument).unwrap_or_default();
        !name.is_empty() && !name.contains('/') && Path::new("/sys/class/net").join(name).exists()
    };

    let mut found: Vec<Other> = processes
        .filter_map(|process| {
            let program = fs::read_to_string(process.join("comm")).ok()?;
            let program = program.trim_end();
            let arguments = fs::read(process.join("cmdline")).ok()?;
            let mut arguments = arguments.split(|byte| *byte == 0);

            let is_mesh = MESH_PROGRAMS.contains(&program);
            let is_here = own.is_some() && namespace(&process) == own;
            let is_certain = arguments.clone().any(|argument| argument == name.as_bytes());
            // A program that names another interface is busy there.
            let is_elsewhere = !is_certain && arguments.any(is_interface);
            let other = Other { name: program.to_owned(), is_certain };

            (is_mesh && is_here && !is_elsewhere).then_some(other)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(wifi: Wifi) -> Survey {
        Survey { name: "wlan0".into(), mtu: 1500, wifi: Some(wifi), others: Vec::new() }
    }

    fn commands(survey: &Survey) -> Vec<String> {
        survey.findings().into_iter().filter_map(|finding| finding.command).collect()
    }

    #[test]
    fn a_radio_that_is_set_up_well_costs_nothing_but_its_rate_of_broadcasts() {
        let wifi = Wifi {
            mode: Some(Mode::AdHoc),
            frequency_mhz: Some(2412),
            width: Some(Width::NoHt),
            forwards: None,
            saves_power: Some(false),
        };
        assert_eq!(commands(&with(wifi)), ["iw dev wlan0 set mcast_rate 24"]);
        let ht = Wifi { width: Some(Width::Mhz20), saves_power: Some(true), ..wifi };
        assert_eq!(
            commands(&with(ht))[1..],
            [
                "iw dev wlan0 ibss leave; iw dev wlan0 ibss join NAME 2412 NOHT",
                "iw dev wlan0 set power_save off",
            ]
        );
        let mesh = Wifi {
            mode: Some(Mode::Mesh),
            width: Some(Width::Mhz20),
            forwards: Some(true),
            ..wifi
        };
        assert_eq!(commands(&with(mesh))[1..], ["iw dev wlan0 set mesh_param mesh_fwding 0"]);
        let alone = Wifi { frequency_mhz: None, ..wifi };
        assert!(commands(&with(alone))[0].contains("ibss join"));
        for mode in [Mode::Station, Mode::AccessPoint, Mode::Monitor] {
            let wrong = Wifi { mode: Some(mode), ..wifi };
            assert!(commands(&with(wrong))[0].contains("set type ibss"), "{mode:?}");
        }
    }

    #[test]
    fn what_is_no_radio_is_judged_by_its_mtu_and_its_users() {
        let cable = Survey { name: "eth0".into(), mtu: 1500, wifi: None, others: Vec::new() };
        assert_eq!(cable.findings(), []);
        let babeld = Other { name: "babeld".into(), is_certain: true };
        let vpn = Survey { mtu: 1420, others: vec![babeld], ..cable };
        assert_eq!(commands(&vpn), ["ip link set eth0 mtu 1500"]);
        assert!(vpn.findings()[1].cost.contains("babeld uses it too"));
        let lo = survey("lo").unwrap().unwrap();
        assert!(lo.wifi.is_none() && lo.mtu > 0, "{lo:?}");
        assert_eq!(survey("nowhere9").unwrap(), None);
    }
}
