//! Tables of nodes and links, and places of nodes that move.

use super::declare::{declared, table};
use super::typescript::Column;
use super::value::{Mismatch, NeedsKey, Value, without_zeros};
use super::{Count, Field, Unit, typescript};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

table! {
    /// State of all nodes, a row for each node. Null stands for what is not known: a daemon knows
    /// its own counters only.
    NodeTable {
        /// Frames sent that carry no payload: hellos, link state, announcements, acknowledgments.
        control, "Control", Frames;
        /// Frames sent with payload as its source gave it.
        data, "Data", Frames;
        /// Frames sent with payload that is a combination of packets.
        coded, "Coded", Frames;
        /// Time on the air of the control frames, us.
        control_us, "Control", Seconds;
        /// Time on the air of the data frames, us.
        data_us, "Data", Seconds;
        /// Time on the air of the coded frames, us.
        coded_us, "Coded", Seconds;
    }
    beside {
        /// Packets that wait to be sent.
        queue: Option<u32>, "(number | null)";
        /// Whether it runs, and is heard of.
        up: bool, "boolean";
    }
    /// Nodes that changed, a row for each. A column of growth that is absent has zeros only.
    NodeTicks {
        /// Packets that wait to be sent now: the value, not its change. It is 0 where it is not
        /// known. An absent column has zeros only.
        queue: u32, "number";
        /// Whether the nodes run now, if that changed for any of them.
        up: bool, "boolean";
    }
}

table! {
    /// State of all links, a row for each link. Frames are those on the air, repetitions by the MAC
    /// included. Null stands for what is not known: real channels do not tell losses, and a daemon
    /// knows frames to itself only.
    LinkTable {
        /// Frames that arrived.
        heard, "Heard", Frames;
        /// Frames that the channel lost.
        channel, "Lost by the channel", Frames;
        /// Frames lost to a collision: another frame, noise, or the receiver itself sending.
        collision, "Lost by collision", Frames;
        /// Frames that arrived with payload new to the receiver.
        innovative, "Innovative", Frames;
        /// Frames that arrived with payload the receiver could do without.
        redundant, "Redundant", Frames;
    }
    beside {
        /// Share of the long frames that arrives, as the receiver has measured it, 0 to 1. Null
        /// while the nodes are no neighbours.
        delivery: Option<f64>, "(number | null)";
    }
    /// Links that changed, a row for each. A column of growth that is absent has zeros only.
    LinkTicks {
        /// Places in the list of links whose measured delivery changed, ascending.
        delivery_row: u32, "number";
        /// New measured delivery of those links, 0 to 1; null if it is not known any more.
        delivery: Option<f64>, "(number | null)";
    }
}

/// Where the nodes of a plan are, a row for each node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// East of the origin, dm.
    pub x_dm: Vec<i32>,
    /// North of it, dm.
    pub y_dm: Vec<i32>,
    /// Above it, dm.
    pub z_dm: Vec<i32>,
}

/// Nodes that moved, a row for each, and how far. A column that is absent has zeros only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    /// Places in the list of nodes, ascending.
    pub row: Vec<u32>,
    /// To the east, dm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<i32>>", optional)]
    pub x_dm: Vec<i32>,
    /// To the north, dm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<i32>>", optional)]
    pub y_dm: Vec<i32>,
    /// Upwards, dm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<i32>>", optional)]
    pub z_dm: Vec<i32>,
}

/// Growth of the counters of one row.
struct Growth<const N: usize> {
    row: u32,
    counters: [u32; N],
}

/// Returns the growth of each row of counters.
fn growth<const N: usize>(
    now: [&Vec<Option<Count>>; N],
    before: [&Vec<Option<Count>>; N],
    rows: usize,
) -> Result<Vec<Growth<N>>, NeedsKey> {
    let row = |row: usize| {
        let mut counters = [0; N];
        for (column, counter) in counters.iter_mut().enumerate() {
            let now = now[column].get(row).ok_or(NeedsKey)?;
            *counter = now.since(before[column].get(row).ok_or(NeedsKey)?)?;
        }
        Ok(Growth { row: row as u32, counters })
    };

    (0..rows).map(row).collect()
}

/// Returns the entry of a list that a tick names.
pub(super) fn place<T>(list: &mut [T], at: u32) -> Result<&mut T, Mismatch> {
    list.get_mut(at as usize).ok_or(Mismatch)
}

impl NodeTable {
    /// Returns the nodes that changed, if any did.
    pub(super) fn ticks_since(&self, before: &Self) -> Result<Option<NodeTicks>, NeedsKey> {
        let rows = self.up.len();
        // A tick writes 0 for a queue that is not known, so it cannot tell that one became known or
        // unknown.
        let is_known = |queue: &Option<u32>| queue.is_some();
        if rows != before.up.len()
            || !self.queue.iter().map(is_known).eq(before.queue.iter().map(is_known))
        {
            return Err(NeedsKey);
        }

        // A row is left out only if nothing of it changed, neither counters nor state.
        let is_same =
            |row: usize| self.up[row] == before.up[row] && self.queue[row] == before.queue[row];
        let grown = growth(self.counters(), before.counters(), rows)?.into_iter();
        let changed = grown.filter(|growth| {
            !is_same(growth.row as usize) || growth.counters.iter().any(|n| *n > 0)
        });

        let mut ticks = NodeTicks::default();
        ticks.set_growth(changed.collect());

        // Queues and states belong to the rows of `ticks`, in the same order. A column that would
        // say nothing new is left out.
        let changed = || ticks.row.iter().map(|row| *row as usize);
        let queue = changed().map(|row| self.queue[row].unwrap_or(0)).collect();
        let up = changed().map(|row| self.up[row]).collect();
        ticks.queue = without_zeros(queue);
        ticks.up = if self.up == before.up { Vec::new() } else { up };

        Ok((!ticks.row.is_empty()).then_some(ticks))
    }

    pub(super) fn apply(&mut self, ticks: &NodeTicks) -> Result<(), Mismatch> {
        self.grow(ticks)?;
        for (at, row) in ticks.row.iter().enumerate() {
            // The rows come from a file and may not exist. An absent column of queues has zeros
            // only.
            if let Some(queue) = place(&mut self.queue, *row)? {
                *queue = ticks.queue.get(at).copied().unwrap_or(0);
            }
            if let Some(up) = ticks.up.get(at) {
                *place(&mut self.up, *row)? = *up;
            }
        }

        Ok(())
    }
}

impl LinkTable {
    /// Returns the links that changed, if any did.
    pub(super) fn ticks_since(&self, before: &Self) -> Result<Option<LinkTicks>, NeedsKey> {
        let rows = self.delivery.len();
        if rows != before.delivery.len() {
            return Err(NeedsKey);
        }

        // Counters and delivery change at different times, so each has its own list of rows.
        let grown = growth(self.counters(), before.counters(), rows)?.into_iter();
        let mut ticks = LinkTicks::default();
        ticks.set_growth(grown.filter(|row| row.counters.iter().any(|n| *n > 0)).collect());

        for (row, delivery) in self.delivery.iter().enumerate() {
            if *delivery != before.delivery[row] {
                ticks.delivery_row.push(row as u32);
                ticks.delivery.push(*delivery);
            }
        }

        Ok((ticks != LinkTicks::default()).then_some(ticks))
    }

    pub(super) fn apply(&mut self, ticks: &LinkTicks) -> Result<(), Mismatch> {
        self.grow(ticks)?;
        for (row, delivery) in ticks.delivery_row.iter().zip(&ticks.delivery) {
            *place(&mut self.delivery, *row)? = *delivery;
        }
        Ok(())
    }
}

impl Places {
    /// Returns the nodes that moved, if any did.
    pub(super) fn moves_since(&self, before: &Self) -> Result<Option<Moves>, NeedsKey> {
        if self.x_dm.len() != before.x_dm.len() {
            return Err(NeedsKey);
        }

        // Steps are small numbers, and columns of zeros vanish: nodes mostly move in the plane.
        let mut moves = Moves::default();
        for row in 0..self.x_dm.len() {
            // The difference of two far places may not fit in 32 bits. A key then tells the places.
            let by =
                |now: &[i32], before: &[i32]| now[row].checked_sub(before[row]).ok_or(NeedsKey);
            let x = by(&self.x_dm, &before.x_dm)?;
            let y = by(&self.y_dm, &before.y_dm)?;
            let z = by(&self.z_dm, &before.z_dm)?;
            if [x, y, z] != [0; 3] {
                moves.row.push(row as u32);
                moves.x_dm.push(x);
                moves.y_dm.push(y);
                moves.z_dm.push(z);
            }
        }

        moves.x_dm = without_zeros(moves.x_dm);
        moves.y_dm = without_zeros(moves.y_dm);
        moves.z_dm = without_zeros(moves.z_dm);
        Ok((!moves.row.is_empty()).then_some(moves))
    }

    pub(super) fn apply(&mut self, moves: &Moves) -> Result<(), Mismatch> {
        let Self { x_dm, y_dm, z_dm } = self;
        for (column, moved) in [(x_dm, &moves.x_dm), (y_dm, &moves.y_dm), (z_dm, &moves.z_dm)] {
            for (row, by) in moves.row.iter().zip(moved) {
                let now = place(column, *row)?;
                *now = now.saturating_add(*by);
            }
        }
        Ok(())
    }
}
