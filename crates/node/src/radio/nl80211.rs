//! Questions to nl80211, the kernel's interface to Wi-Fi, over generic netlink.
//!
//! A question has one interface, and an answer is one message. Numbers are those of
//! `linux/nl80211.h`.

use ncmesh_engine::time::Duration;
use ncmesh_stack::CarrierTime;
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_GENERIC;
use std::io;

use crate::generic_netlink::{
    Attribute, DONE, ERROR, Header, attribute, body, family, kind, messages, number, outcome,
    request,
};

/// Attribute of every question: the interface.
const IFINDEX: u16 = 3;
/// Command that asks for type and channel of an interface, and the attributes of its answer.
const GET_INTERFACE: u8 = 5;
const IFTYPE: u16 = 5;
const FREQUENCY: u16 = 38;
const CHANNEL_TYPE: u16 = 39;
const CHANNEL_WIDTH: u16 = 159;
/// Command that asks for the settings of a mesh interface, and the attributes of its answer.
const GET_MESH_CONFIG: u8 = 28;
const MESH_CONFIG: u16 = 35;
const FORWARDING: u16 = 19;
/// Command that asks whether a station sleeps between beacons, and the attribute of its answer.
const GET_POWER_SAVE: u8 = 62;
const PS_STATE: u16 = 93;
/// Command that sets the rate of broadcasts, and its attribute, in units of 100 kbit/s.
const SET_MCAST_RATE: u8 = 92;
const MCAST_RATE: u16 = 107;
/// Command that asks for the stations that a radio hears, and what is in its answers: how long ago
/// a station was heard, ms, and at which strength, on average and last, dBm.
const GET_STATION: u8 = 17;
const STATION_INFO: u16 = 21;
const INACTIVE_TIME: u16 = 1;
const SIGNAL: u16 = 7;
const SIGNAL_AVERAGE: u16 = 13;
/// Stations that were not heard for longer count as gone.
const GONE_MS: u32 = 30_000;
/// Command that asks how channels are used, the attribute of its answers, and what is in that:
/// whether it is the channel in use, and times, ms.
const GET_SURVEY: u8 = 50;
const SURVEY_INFO: u16 = 84;
const SURVEY_IN_USE: u16 = 3;
const SURVEY_TIME: u16 = 4;
const SURVEY_BUSY: u16 = 5;
/// Most datagrams that are read before the last message of an answer.
const MOST_DATAGRAMS: usize = 64;
/// Highest frequency of the 2.4 GHz band, MHz, and the lowest rates of the bands.
const HIGHEST_24_GHZ: u32 = 2484;
const LOWEST_24_GHZ: u32 = 10;
const LOWEST_5_GHZ: u32 = 60;
/// Name of the family.
const FAMILY: &str = "nl80211";

ncmesh_engine::choices! {
    /// Type of a Wi-Fi interface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mode {
        /// Ad-hoc mode (IBSS).
        AdHoc = "ad-hoc",
        /// Client of an access point.
        Station = "station",
        /// Access point.
        AccessPoint = "access point",
        /// Monitor.
        Monitor = "monitor",
        /// Mesh of 802.11s.
        Mesh = "mesh",
        /// Outside the context of a cell (OCB), for vehicles.
        Outside = "outside a cell",
        /// Another one.
        Other = "another type",
    }
}

ncmesh_engine::choices! {
    /// Width of a channel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Width {
        /// 20 MHz without HT.
        NoHt = "20 MHz without HT",
        /// 20 MHz with HT.
        Mhz20 = "20 MHz with HT",
        /// 40 MHz.
        Mhz40 = "40 MHz",
        /// 80 MHz.
        Mhz80 = "80 MHz",
        /// 160 MHz.
        Mhz160 = "160 MHz",
        /// Another one.
        Other = "another width",
    }
}

impl Mode {
    /// Returns the type that has this number in nl80211.
    pub(super) fn from_number(number: u32) -> Self {
        match number {
            1 => Self::AdHoc,
            2 => Self::Station,
            3 => Self::AccessPoint,
            6 => Self::Monitor,
            7 => Self::Mesh,
            11 => Self::Outside,
            _ => Self::Other,
        }
    }
}

impl Width {
    /// Returns the width that has this number in nl80211.
    pub(super) fn from_number(number: u32) -> Self {
        match number {
            0 => Self::NoHt,
            1 => Self::Mhz20,
            2 => Self::Mhz40,
            3 | 4 => Self::Mhz80,
            5 => Self::Mhz160,
            _ => Self::Other,
        }
    }
}

/// Type and channel of an interface, as far as the kernel tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) mode: Option<Mode>,
    pub(super) frequency_mhz: Option<u32>,
    pub(super) width: Option<Width>,
}

/// Returns type and channel of an interface. `None` if it is no radio.
pub(super) fn channel(index: u32) -> Option<Channel> {
    ask(GET_INTERFACE, index).and_then(|answer| parse_channel(&answer))
}

/// Returns whether the interface forwards frames by itself. `None` if it is not in a mesh, or the
/// kernel does not say.
///
/// With `mesh_fwding`, which is the default, every node of a mesh (802.11s) hears every other one
/// through the kernel's own forwarding. There are no hops left to code over, and each broadcast is
/// repeated by all. Nodes of ncmesh then treat every node as a neighbour.
pub(super) fn forwards(index: u32) -> Option<bool> {
    ask(GET_MESH_CONFIG, index).and_then(|answer| parse_forwarding(&answer))
}

/// Returns whether the radio sleeps while it has nothing to send.
pub(super) fn saves_power(index: u32) -> Option<bool> {
    ask(GET_POWER_SAVE, index).and_then(|answer| parse_power_save(&answer))
}

/// Returns how long the radio was on its channel, and how long that was busy. `None` if the driver
/// does not tell.
pub(super) fn carrier(index: u32) -> Option<CarrierTime> {
    let mut found = None;
    // One message for each channel.
    let told = ask_for_all(GET_SURVEY, index, |message| {
        found = found.or_else(|| parse_survey(message));
    });
    told.ok().and(found)
}

/// Returns the strength of the weakest station that the radio hears, dBm. `None` if it hears none,
/// or the driver does not tell.
pub(super) fn weakest_station(index: u32) -> Option<i32> {
    let mut weakest: Option<i32> = None;
    let told = ask_for_all(GET_STATION, index, |message| {
        if let Some(dbm) = parse_station(message) {
            weakest = Some(weakest.map_or(dbm, |other| other.min(dbm)));
        }
    });
    told.ok().and(weakest)
}

/// Rate of broadcasts that was set. The lowest rate of the band, which is the default, is set again
/// on drop: the kernel does not tell the one from before.
#[derive(Debug)]
pub(super) struct RateSet {
    index: u32,
    units_of_100k: u32,
}

impl RateSet {
    /// Sets the rate, in units of 100 kbit/s.
    ///
    /// # Errors
    /// The interface is no radio in ad-hoc or mesh mode, its band has no such rate, or this process
    /// lacks `CAP_NET_ADMIN`.
    pub(super) fn new(index: u32, units_of_100k: u32) -> io::Result<Self> {
        set_broadcast_rate(index, units_of_100k).map(|()| Self { index, units_of_100k })
    }

    /// Returns the rate, Mbit/s.
    pub(super) fn mbit_s(&self) -> f64 {
        f64::from(self.units_of_100k) / 10.0
    }
}

impl Drop for RateSet {
    fn drop(&mut self) {
        let frequency = channel(self.index).and_then(|channel| channel.frequency_mhz);
        let is_high = frequency.is_some_and(|mhz| mhz > HIGHEST_24_GHZ);
        let lowest = if is_high { LOWEST_5_GHZ } else { LOWEST_24_GHZ };
        // The interface may be gone, and its rate with it.
        let _ = set_broadcast_rate(self.index, lowest);
    }
}

fn set_broadcast_rate(index: u32, units_of_100k: u32) -> io::Result<()> {
    let socket = Socket::new(NETLINK_GENERIC)?;
    let family = family(&socket, FAMILY)?;
    let question = request(
        Header { kind: family, flags: NLM_F_REQUEST | NLM_F_ACK, command: SET_MCAST_RATE },
        &[
            Attribute { kind: IFINDEX, value: &index.to_ne_bytes() },
            Attribute { kind: MCAST_RATE, value: &units_of_100k.to_ne_bytes() },
        ],
    );

    socket.send(&question, 0)?;
    outcome(&socket.recv_from_full()?.0)
}

/// Returns the answer to a question about an interface.
fn ask(command: u8, index: u32) -> Option<Vec<u8>> {
    let answer = || -> io::Result<Vec<u8>> {
        let socket = Socket::new(NETLINK_GENERIC)?;
        let header = Header { kind: family(&socket, FAMILY)?, flags: NLM_F_REQUEST, command };
        let interface = Attribute { kind: IFINDEX, value: &index.to_ne_bytes() };
        socket.send(&request(header, &[interface]), 0)?;
        Ok(socket.recv_from_full()?.0)
    };
    answer().ok()
}

/// Asks a question about an interface that has several answers, and hands each to `take`.
fn ask_for_all(command: u8, index: u32, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let socket = Socket::new(NETLINK_GENERIC)?;
    let flags = NLM_F_REQUEST | NLM_F_DUMP;
    let header = Header { kind: family(&socket, FAMILY)?, flags, command };
    let interface = Attribute { kind: IFINDEX, value: &index.to_ne_bytes() };
    socket.send(&request(header, &[interface]), 0)?;

    // Several messages come in a datagram.
    for _ in 0..MOST_DATAGRAMS {
        let datagram = socket.recv_from_full()?.0;
        for message in messages(&datagram) {
            if matches!(kind(message), Some(DONE | ERROR)) {
                return Ok(());
            }
            take(message);
        }
    }
    Ok(())
}

/// Returns the strength of a station, dBm; `None` if it is gone.
fn parse_station(message: &[u8]) -> Option<i32> {
    let info = attribute(body(message), STATION_INFO)?;
    if number(info, INACTIVE_TIME).is_some_and(|ms| ms > GONE_MS) {
        return None;
    }
    let signal = attribute(info, SIGNAL_AVERAGE).or_else(|| attribute(info, SIGNAL));
    signal?.first().map(|dbm| dbm.cast_signed().into())
}

fn parse_channel(answer: &[u8]) -> Option<Channel> {
    let body = body(answer);
    let mode = number(body, IFTYPE)?;
    // Older drivers tell the type of a channel instead of its width: none is one without HT.
    let width =
        number(body, CHANNEL_WIDTH).or_else(|| number(body, CHANNEL_TYPE).map(|kind| kind.min(2)));
    Some(Channel {
        mode: Some(Mode::from_number(mode)),
        frequency_mhz: number(body, FREQUENCY),
        width: width.map(Width::from_number),
    })
}

fn parse_forwarding(answer: &[u8]) -> Option<bool> {
    let config = attribute(body(answer), MESH_CONFIG)?;
    attribute(config, FORWARDING)?.first().map(|forwards| *forwards != 0)
}

fn parse_power_save(answer: &[u8]) -> Option<bool> {
    number(body(answer), PS_STATE).map(|state| state != 0)
}

/// Returns the times that a message tells, if it is of the channel in use.
fn parse_survey(message: &[u8]) -> Option<CarrierTime> {
    let info = attribute(body(message), SURVEY_INFO)?;
    attribute(info, SURVEY_IN_USE)?;
    let time = |kind| {
        let ms = attribute(info, kind)?.first_chunk().copied().map(u64::from_ne_bytes)?;
        Some(Duration::from_millis(ms))
    };
    Some(CarrierTime { on: time(SURVEY_TIME)?, busy: time(SURVEY_BUSY)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic_netlink::{BODY, HEADER};

    /// Returns an attribute with its padding.
    fn attribute_of(kind: u16, value: &[u8]) -> Vec<u8> {
        let header = Header { kind: 0, flags: 0, command: 0 };
        request(header, &[Attribute { kind, value }])[BODY..].to_vec()
    }

    /// Returns an answer of nl80211 with these attributes.
    fn answer(attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut message = request(Header { kind: 30, flags: 0, command: 7 }, &[]);
        message.extend(attributes.concat());
        let length = (message.len() as u32).to_ne_bytes();
        message[..4].copy_from_slice(&length);
        message
    }

    /// An answer to `GET_INTERFACE` of a radio in ad-hoc mode, `2412 HT20`, as a little-endian
    /// kernel lays it out: name, index, type, device, MAC address, generation, frequency, type of
    /// channel, width, and center.
    const ADHOC: &str = "74000000 1e00 0000 00000000 00000000 07 01 0000 \
        0a00 0400 776c616e31000000 0800 0300 05000000 0800 0500 01000000 0800 0100 01000000 \
        0a00 0600 020000000100 0000 0800 2e00 05000000 0800 2600 6c090000 0800 2700 01000000 \
        0800 9f00 01000000 0800 a000 6c090000";

    #[test]
    #[cfg(target_endian = "little")]
    fn type_and_channel_are_read_from_a_whole_answer() {
        let digits: Vec<char> = ADHOC.chars().filter(char::is_ascii_hexdigit).collect();
        let byte =
            |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        let whole: Vec<u8> = digits.chunks(2).map(byte).collect();
        let channel = parse_channel(&whole).unwrap();
        assert_eq!(channel.mode, Some(Mode::AdHoc));
        assert_eq!((channel.frequency_mhz, channel.width), (Some(2412), Some(Width::Mhz20)));
        for cut in 0..whole.len() {
            let _ = parse_channel(&whole[..cut]);
        }
    }

    #[test]
    fn a_channel_without_ht_is_told_apart_also_by_old_drivers() {
        let iftype = attribute_of(IFTYPE, &1_u32.to_ne_bytes());
        for (kind, number, width) in [
            (CHANNEL_WIDTH, 0_u32, Some(Width::NoHt)),
            (CHANNEL_WIDTH, 2, Some(Width::Mhz40)),
            (CHANNEL_WIDTH, 77, Some(Width::Other)),
            (CHANNEL_TYPE, 0, Some(Width::NoHt)),
            (CHANNEL_TYPE, 1, Some(Width::Mhz20)),
            (CHANNEL_TYPE, 3, Some(Width::Mhz40)),
            (FREQUENCY, 2412, None),
        ] {
            let told = answer(&[iftype.clone(), attribute_of(kind, &number.to_ne_bytes())]);
            assert_eq!(parse_channel(&told).unwrap().width, width);
        }
    }

    #[test]
    fn forwarding_is_found_among_other_settings() {
        for forwarding in [0, 1] {
            let settings =
                [attribute_of(6, &[31]), attribute_of(FORWARDING, &[forwarding])].concat();
            let told = answer(&[
                attribute_of(IFINDEX, &7_u32.to_ne_bytes()),
                attribute_of(MESH_CONFIG | 0x8000, &settings),
            ]);
            assert_eq!(parse_forwarding(&told), Some(forwarding == 1));
        }
    }

    #[test]
    fn power_save_is_told() {
        for state in [0_u32, 1] {
            let told = answer(&[attribute_of(PS_STATE, &state.to_ne_bytes())]);
            assert_eq!(parse_power_save(&told), Some(state == 1));
        }
    }

    #[test]
    fn carrier_times_are_those_of_the_channel_in_use() {
        let ms = |kind, ms: u64| attribute_of(kind, &ms.to_ne_bytes());
        let survey = |parts: &[Vec<u8>]| {
            answer(&[
                attribute_of(IFINDEX, &[7, 0, 0, 0]),
                attribute_of(SURVEY_INFO, &parts.concat()),
            ])
        };
        let frequency = attribute_of(1, &2412_u32.to_ne_bytes());
        let times = [ms(SURVEY_TIME, 90_000), ms(SURVEY_BUSY, 30_000)];
        let other = survey(&[&[frequency.clone()][..], &times].concat());
        let in_use = attribute_of(SURVEY_IN_USE, &[]);
        let own = survey(&[&[frequency.clone(), in_use.clone()][..], &times].concat());
        let untold = survey(&[frequency, in_use]);

        let datagram = [other.clone(), own.clone(), untold.clone()].concat();
        let read: Vec<_> = messages(&datagram).map(parse_survey).collect();
        let busy = Duration::from_secs(30);
        let told = CarrierTime { on: Duration::from_secs(90), busy };
        assert_eq!(read, [None, Some(told), None]);

        // A cut message, lengths that are none, and nothing.
        for cut in 0..own.len() {
            assert!(messages(&own[..cut]).all(|message| parse_survey(message).is_none()));
        }
        for odd in [&[0; 64][..], &[255; 64], &[15, 0, 0, 0, 0, 0]] {
            assert_eq!(messages(odd).count(), 0);
        }
        // The loopback interface is no radio.
        assert_eq!(carrier(1), None);
    }

    #[test]
    fn stations_are_told_with_their_strength_unless_they_are_gone() {
        let ms = |ms: u32| attribute_of(INACTIVE_TIME, &ms.to_ne_bytes());
        let dbm = |kind, dbm: i8| attribute_of(kind, &[dbm.cast_unsigned()]);
        let station = |parts: &[Vec<u8>]| answer(&[attribute_of(STATION_INFO, &parts.concat())]);

        let present = station(&[ms(200), dbm(SIGNAL, -70)]);
        let averaged = station(&[ms(200), dbm(SIGNAL, -70), dbm(SIGNAL_AVERAGE, -66)]);
        let gone = station(&[ms(31_000), dbm(SIGNAL, -90)]);
        let untold = station(&[ms(200)]);
        let read = [&present, &averaged, &gone, &untold].map(|message| parse_station(message));
        assert_eq!(read, [Some(-70), Some(-66), None, None]);
        for cut in 0..present.len() {
            let _ = parse_station(&present[..cut]);
        }
        // The loopback interface is no radio.
        assert_eq!(weakest_station(1), None);
    }

    #[test]
    fn a_request_for_a_rate_is_acknowledged_or_refused() {
        let acknowledged = |code: i32| {
            let mut message = request(Header { kind: ERROR, flags: 0, command: 0 }, &[]);
            message[HEADER..].copy_from_slice(&code.to_ne_bytes());
            message
        };
        assert!(outcome(&acknowledged(0)).is_ok());
        let refused = outcome(&acknowledged(-95)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(95));
        for odd in [&[][..], &[0; 17], &answer(&[])] {
            assert!(outcome(odd).is_err());
        }
        assert!(outcome(&acknowledged(i32::MIN)).is_err());
    }

    #[test]
    fn answers_that_say_nothing_are_survived() {
        let error = request(Header { kind: ERROR, flags: 0, command: 0 }, &[]);
        let other = answer(&[attribute_of(IFINDEX, &[0; 4])]);
        for told in [&[][..], &[0; 3], &[255; 64], &[0; 64], &error, &other] {
            assert_eq!(parse_forwarding(told), None);
            assert_eq!(parse_power_save(told), None);
            assert_eq!(parse_channel(told), None);
        }
        // The loopback interface is no radio.
        assert_eq!(forwards(1), None);
        assert_eq!(channel(1), None);
        assert!(RateSet::new(1, 240).is_err());
    }
}
