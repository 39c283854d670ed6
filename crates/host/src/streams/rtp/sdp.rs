//! Session descriptions (SDP, RFC 8866): what a player must know of RTP packets.
//!
//! A description from a file or from the mesh is read into [`Track`]s, and written anew from these.
//! So a player never sees a line of another host that says more than codecs: no address, no port,
//! no name.

use super::marks::{self, Codec};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Most tracks of a stream: a video and its sound, twice.
pub const MAX_TRACKS: usize = 4;
/// Longest description, bytes. It travels in one packet.
pub const MAX_SDP: usize = 1200;
/// Distance between the ports of two tracks: RTCP has the port behind its RTP.
pub const PORTS_PER_TRACK: u16 = 2;

/// Port in descriptions that travel. A receiver writes its own.
pub(super) const TRAVEL_PORT: u16 = 5004;

/// Attribute of a medium as a whole.
const FRAME_RATE: &str = "framerate";
/// Attributes that say how to decode a track.
const ATTRIBUTES: [&str; 3] = ["rtpmap", "fmtp", FRAME_RATE];

/// One track of a session: RTP packets of one codec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Kind of medium: `video` or `audio`.
    pub media: String,
    /// UDP port that its packets come from.
    pub port: u16,
    /// Number of the codec in RTP packets; `None` until a packet shows it.
    pub payload_type: Option<u8>,
    /// The codec whose marks its packets have.
    pub codec: Codec,
    /// The payload format, such as `H264/90000`.
    format: Option<String>,
    /// Further attributes, such as `fmtp:96 packetization-mode=1`.
    attributes: Vec<String>,
}

/// Reason why a session description is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SdpError {
    /// It is too long to travel in one packet.
    #[error("it has {0} bytes: allowed are {MAX_SDP}")]
    Long(usize),
    /// It does not begin as descriptions do.
    #[error("it is no session description: its first line is not v=0")]
    NotSdp,
    /// A medium has no port, no payload type, or is neither video nor audio over RTP.
    #[error("the line {0:?}: allowed is m=video PORT RTP/AVP TYPE, or audio, with ports from 1")]
    Media(String),
    /// There is none, or there are too many.
    #[error("it has {0} media: allowed are 1 to {MAX_TRACKS}")]
    Count(usize),
    /// Two media overlap.
    #[error("two media have port {0}: each takes its port and the next one for RTCP")]
    Port(u16),
}

/// Reads the tracks of a session description.
///
/// # Errors
/// [`SdpError`] says what is wrong with it.
pub fn read(text: &str) -> Result<Vec<Track>, SdpError> {
    if text.len() > MAX_SDP {
        return Err(SdpError::Long(text.len()));
    }

    let mut lines = text.lines().map(str::trim_end);
    if lines.next() != Some("v=0") {
        return Err(SdpError::NotSdp);
    }

    // A track begins with its medium; attributes belong to the track before them.
    let mut tracks: Vec<Track> = Vec::new();
    for line in lines {
        if let Some(media) = line.strip_prefix("m=") {
            tracks.push(read_media(media).ok_or_else(|| SdpError::Media(line.into()))?);
        } else if let (Some(attribute), Some(track)) = (line.strip_prefix("a="), tracks.last_mut())
        {
            track.read_attribute(attribute);
        }
    }

    check(&tracks)?;

    // The description that is written from it must fit a packet, too.
    match write(&tracks, TRAVEL_PORT).len() {
        length if length > MAX_SDP => Err(SdpError::Long(length)),
        _ => Ok(tracks),
    }
}

/// Reads a description that a source wrote by [`write`] from [`TRAVEL_PORT`] on. A track that the
/// source left out is there without a payload type, so that each is at its number. Returns `None`
/// if a source does not write so.
pub(super) fn read_travelled(text: &[u8]) -> Option<Vec<Track>> {
    let text = core::str::from_utf8(text).ok()?;
    let mut tracks: Vec<Track> = Vec::new();
    for track in read(text).ok()? {
        // On its way a track is named by its port. A track that is left out keeps its place.
        let distance = track.port.checked_sub(TRAVEL_PORT)?;
        let number = usize::from(distance / PORTS_PER_TRACK);
        let is_next = distance.is_multiple_of(PORTS_PER_TRACK) && number >= tracks.len();
        if !is_next || number >= MAX_TRACKS {
            return None;
        }
        tracks.resize(number, Track { payload_type: None, ..track.clone() });
        tracks.push(track);
    }

    Some(tracks)
}

/// Checks that there are tracks, not too many, and that their ports do not overlap.
///
/// # Errors
/// [`SdpError::Count`] or [`SdpError::Port`].
pub fn check(tracks: &[Track]) -> Result<(), SdpError> {
    if tracks.is_empty() || tracks.len() > MAX_TRACKS {
        return Err(SdpError::Count(tracks.len()));
    }
    for (at, track) in tracks.iter().enumerate() {
        // RTP and RTCP of a track take two ports next to each other.
        let overlaps = |other: &&Track| track.port.abs_diff(other.port) < PORTS_PER_TRACK;
        if tracks[..at].iter().any(|other| overlaps(&other)) {
            return Err(SdpError::Port(track.port));
        }
    }

    Ok(())
}

fn read_media(media: &str) -> Option<Track> {
    let mut words = media.split(' ');
    let medium = words.next().filter(|word| matches!(*word, "video" | "audio"))?;
    let port = words.next()?.parse().ok().filter(|port| (1..u16::MAX).contains(port))?;
    let profile = words.next()?;
    let payload_type = words.next()?.parse().ok().filter(|number| *number < 128)?;
    matches!(profile, "RTP/AVP" | "RTP/AVPF").then(|| Track {
        media: medium.into(),
        port,
        payload_type: Some(payload_type),
        codec: Codec::Plain,
        format: None,
        attributes: Vec::new(),
    })
}

impl Track {
    fn read_attribute(&mut self, attribute: &str) {
        let mut words = attribute.split([':', ' ']);
        let name = words.next().unwrap_or_default();
        // Attributes go to a player, so nothing but printable ASCII may be in them.
        let is_plain = attribute.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !ATTRIBUTES.contains(&name) || !is_plain {
            return;
        }

        // A medium may have more payload types than the first, as for packets sent again.
        let payload_type = words.next().and_then(|word| word.parse().ok());
        if name != FRAME_RATE && payload_type != self.payload_type {
            return;
        }

        let format = attribute.strip_prefix("rtpmap:").and_then(|map| map.split_once(' '));
        match format {
            Some((_, format)) => {
                let Ok(codec) = format.parse();
                self.codec = codec;
                self.format = Some(format.into());
            }
            None => self.attributes.push(attribute.into()),
        }
    }
}

/// Writes the description of tracks for a player on this host, whose ports begin at `port`. Leaves
/// out tracks whose payload type is not known yet.
#[must_use]
pub fn write(tracks: &[Track], port: u16) -> String {
    let own = Ipv4Addr::LOCALHOST;
    let mut text =
        format!("v=0\r\no=- 0 0 IN IP4 {own}\r\ns=ncmesh\r\nc=IN IP4 {own}\r\nt=0 0\r\n");
    let mut port = port;
    for track in tracks {
        // Writing to a string cannot fail.
        let _ = track.write(&mut text, port);
        port = port.wrapping_add(PORTS_PER_TRACK);
    }

    text
}

impl Track {
    fn write(&self, text: &mut String, port: u16) -> fmt::Result {
        let Some(number) = self.payload_type else { return Ok(()) };
        write!(text, "m={} {port} RTP/AVP {number}\r\n", self.media)?;
        if let Some(format) = &self.format {
            write!(text, "a=rtpmap:{number} {format}\r\n")?;
        }
        self.attributes.iter().try_for_each(|attribute| write!(text, "a={attribute}\r\n"))
    }
}

/// A codec and its UDP port on this host, written `h264=udp:5004`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RtpPort {
    codec: &'static marks::Named,
    port: u16,
}

impl RtpPort {
    /// Returns the track of the packets that come there.
    #[must_use]
    pub fn track(&self) -> Track {
        Track {
            media: self.codec.media.into(),
            port: self.port,
            payload_type: None,
            codec: self.codec.codec,
            format: Some(self.codec.format.into()),
            attributes: Vec::new(),
        }
    }
}

impl FromStr for RtpPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (name, port) = text.split_once("=udp:")?;
            let port = port.parse().ok().filter(|port| (1..u16::MAX).contains(port))?;
            Some(Self { codec: marks::named(name)?, port })
        };

        read().ok_or_else(|| {
            let names = marks::names();
            format!("rtp {text:?}: allowed is CODEC=udp:PORT, CODEC being one of {names}")
        })
    }
}

impl TryFrom<String> for RtpPort {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RtpPort> for String {
    fn from(port: RtpPort) -> Self {
        port.to_string()
    }
}

impl fmt::Display for RtpPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=udp:{}", self.codec, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As ffmpeg writes it, with sound.
    const SDP: &str = "v=0\r\no=- 0 0 IN IP4 10.9.9.9\r\ns=No Name\r\nc=IN IP4 10.9.9.9\r\n\
        t=0 0\r\n\
        a=tool:libavformat 59.27.100\r\nm=video 5004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
        a=fmtp:96 packetization-mode=1\r\na=control:streamid=0\r\nm=audio 5006 RTP/AVP 97\r\n\
        b=AS:96\r\na=rtpmap:97 opus/48000/2\r\n";

    #[test]
    fn a_player_is_told_codecs_and_ports_of_its_own_host_and_nothing_else() {
        let tracks = read(SDP).unwrap();
        assert_eq!(
            tracks.iter().map(|track| track.codec).collect::<Vec<_>>(),
            [Codec::H264, Codec::Plain]
        );
        let written = write(&tracks, 6004);
        assert_eq!(
            written,
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=ncmesh\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
             m=video 6004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
             a=fmtp:96 packetization-mode=1\r\nm=audio 6006 RTP/AVP 97\r\n\
             a=rtpmap:97 opus/48000/2\r\n"
        );
        assert_eq!(write(&read(&written).unwrap(), 6004), written);
    }

    #[test]
    fn lines_about_other_payload_types_of_a_medium_are_left_out() {
        let tracks = read(
            "v=0\nm=video 5004 RTP/AVP 96 97\na=rtpmap:97 rtx/90000\na=rtpmap:96 H264/90000\n\
             a=rtpmap:98 VP8/90000\na=fmtp:96 packetization-mode=1\na=fmtp:97 apt=96\n\
             a=framerate:25",
        )
        .unwrap();
        assert_eq!(tracks[0].codec, Codec::H264);
        let written = write(&tracks, 6004);
        assert!(written.ends_with(
            "m=video 6004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
             a=fmtp:96 packetization-mode=1\r\na=framerate:25\r\n"
        ));
    }

    #[test]
    fn what_is_no_description_is_refused_with_the_reason() {
        let media = |lines: &str| read(&format!("v=0\n{lines}")).unwrap_err();
        assert_eq!(read("hello"), Err(SdpError::NotSdp));
        assert_eq!(media(""), SdpError::Count(0));
        assert_eq!(media(&"a".repeat(2000)), SdpError::Long(2004));
        let long = format!("m=video 1 RTP/AVP 96\na=fmtp:96 {}", "a".repeat(1150));
        assert!(matches!(media(&long), SdpError::Long(1201..)));
        for bad in ["video 0 RTP/AVP 96", "video 5004 TCP 96", "text 5004 RTP/AVP 96", "video"] {
            assert_eq!(media(&format!("m={bad}")), SdpError::Media(format!("m={bad}")));
        }
        let overlapping = "m=video 5004 RTP/AVP 96\nm=audio 5005 RTP/AVP 97";
        assert_eq!(media(overlapping), SdpError::Port(5005));
        assert_eq!(media(&"m=video 5004 RTP/AVP 96\n".repeat(5)), SdpError::Count(5));
    }

    #[test]
    fn a_codec_and_its_port_survive_text() {
        let port: RtpPort = "h264=udp:5004".parse().unwrap();
        assert_eq!(port.to_string(), "h264=udp:5004");
        assert_eq!((port.track().port, port.track().codec), (5004, Codec::H264));
        for bad in ["", "h264", "h264=5004", "x=udp:5004", "h264=udp:0", "h264=udp:65535"] {
            assert!(bad.parse::<RtpPort>().unwrap_err().contains("CODEC=udp:PORT"), "{bad}");
        }
    }

    #[test]
    fn a_track_without_a_payload_type_is_not_described() {
        let mut track: Track = "opus=udp:5004".parse::<RtpPort>().unwrap().track();
        assert!(!write(&[track.clone()], 6004).contains("m="));
        track.payload_type = Some(111);
        let written = write(&[track], 6004);
        assert!(written.ends_with("m=audio 6004 RTP/AVP 111\r\na=rtpmap:111 opus/48000/2\r\n"));
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_writes_lines_of_its_own(
            text in "(v=0\n)?([ma=:0-9 \r\n]|\\PC)*",
        ) {
            if let Ok(tracks) = read(&text) {
                let written = write(&tracks, 6004);
                let keys = ["v=", "o=", "s=", "c=", "t=", "m=", "a="];
                let known = |line: &str| keys.iter().any(|key| line.starts_with(key));
                prop_assert!(written.lines().all(known), "{written:?}");
            }
        }
    }
}
