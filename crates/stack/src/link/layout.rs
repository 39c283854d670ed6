//! Description of probes.

use super::PROBE;
use ncmesh_engine::layout::{FlowOf, Layout, Length, bytes, field, u16, u32};

/// Layouts of the frames of this service.
pub const LAYOUTS: &[Layout] = &[Layout {
    kind: PROBE,
    name: "probe",
    variant: None,
    info: "sequence {probe.sequence}",
    flow: FlowOf::None,
    batch: None,
    parts: &[
        field(u32("probe.sequence", "Sequence", "number of this probe, from 0 at each start")),
        field(u16(
            "probe.quick",
            "Quick probes",
            "how many probes after a start are followed quickly by the next",
        )),
        field(u16(
            "probe.quick_period",
            "Quick period, ms",
            "from one of those to the next, before jitter of +-10 %; 0 is read as 1",
        )),
        field(u16("probe.period", "Period, ms", "the same of all later ones")),
        field(bytes(
            "padding",
            Length::Rest(0, usize::MAX),
            "Padding",
            "zeros, up to `[link] probe_size` in all, at most the radio's `mtu`; not looked at",
        )),
    ],
}];
