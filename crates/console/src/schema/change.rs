//! Ticks from keys, and keys from ticks.
//!
//! A source tells its whole state as keys. [`Key::tick_since`] is what changed between two of them,
//! and [`Key::apply`] is its inverse, for readers and tests.

use super::{
    Count, FlowState, FlowTick, Key, LinkTable, LinkTicks, Moves, NodeTable, NodeTicks, Places,
    ReceiverState, ReceiverTick, StreamReceiverState, StreamReceiverTick, StreamState, StreamTick,
    Tick, TransferState, TransferTick,
};

/// A tick that does not fit the key before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tick names a node, link, transfer, flow or stream that there is not")]
pub struct Mismatch;

impl Key {
    /// Returns what changed since `before`. `None` if a tick cannot say it: lists have grown, a
    /// counter has fallen, or what was known is not known any more.
    #[must_use]
    pub fn tick_since(&self, before: &Self) -> Option<Tick> {
        Some(Tick {
            time_s: self.time_s,
            nodes: self.nodes.ticks_since(&before.nodes)?,
            links: self.links.ticks_since(&before.links)?,
            transfers: changes(&self.transfers, &before.transfers, TransferState::tick_since)?,
            flows: changes(&self.flows, &before.flows, FlowState::tick_since)?,
            streams: changes(&self.streams, &before.streams, StreamState::tick_since)?,
            moves: match (&self.places, &before.places) {
                (Some(now), Some(before)) => now.moves_since(before)?,
                (None, None) => None,
                _ => return None,
            },
        })
    }

    /// Adds a tick, so that this becomes the state at its time.
    ///
    /// # Errors
    /// [`Mismatch`]; the key is then of no use any more.
    pub fn apply(&mut self, tick: &Tick) -> Result<(), Mismatch> {
        self.time_s = tick.time_s;
        if let Some(nodes) = &tick.nodes {
            self.nodes.apply(nodes)?;
        }
        if let Some(links) = &tick.links {
            self.links.apply(links)?;
        }
        for change in &tick.transfers {
            place(&mut self.transfers, change.transfer)?.apply(change)?;
        }
        for change in &tick.flows {
            place(&mut self.flows, change.flow)?.apply(change);
        }
        for change in &tick.streams {
            place(&mut self.streams, change.stream)?.apply(change)?;
        }
        if let Some(moves) = &tick.moves {
            self.places.as_mut().ok_or(Mismatch)?.apply(moves)?;
        }
        Ok(())
    }
}

/// Returns the changes of a list's entries, without those that did not change.
fn changes<S, T>(
    now: &[S],
    before: &[S],
    tick: impl Fn(&S, &S, u32) -> Option<Option<T>>,
) -> Option<Vec<T>> {
    if now.len() != before.len() {
        return None;
    }
    let all = now.iter().zip(before).zip(0..).map(|((now, before), at)| tick(now, before, at));
    Some(all.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Returns the entry of a list that a tick names.
fn place<T>(list: &mut [T], at: u32) -> Result<&mut T, Mismatch> {
    list.get_mut(at as usize).ok_or(Mismatch)
}

/// Returns a value if it differs from that before.
fn changed<T: PartialEq + Clone>(now: &T, before: &T) -> Option<T> {
    (now != before).then(|| now.clone())
}

/// Returns how much each counter of a list has grown; no numbers if none has.
fn growth(now: &[Count], before: &[Count]) -> Option<Vec<u32>> {
    // A list that is longer began with zeros.
    let before = before.iter().copied().chain(std::iter::repeat(Count(0)));
    let grown = now.iter().zip(before).map(|(now, before)| now.since(before));
    Some(without_zeros(grown.collect::<Option<_>>()?))
}

/// Returns a column, or none if it has nothing but zeros.
fn without_zeros<T: Default + PartialEq>(column: Vec<T>) -> Vec<T> {
    if column.iter().all(|grown| *grown == T::default()) { Vec::new() } else { column }
}

/// Adds the growth of the rows that a tick has.
fn grow(counters: &mut [Count], rows: &[u32], column: &[u32]) -> Result<(), Mismatch> {
    for (row, grown) in rows.iter().zip(column) {
        place(counters, *row)?.grow(*grown);
    }
    Ok(())
}

/// Adds the growth of a list of counters.
fn grow_all(counters: &mut Vec<Count>, grown: &[u32]) {
    if counters.len() < grown.len() {
        counters.resize(grown.len(), Count(0));
    }
    counters.iter_mut().zip(grown).for_each(|(counter, grown)| counter.grow(*grown));
}

impl NodeTable {
    /// Returns the nodes that changed.
    fn ticks_since(&self, before: &Self) -> Option<Option<NodeTicks>> {
        let columns = |table: &Self| {
            let Self { control, data, coded, control_us, data_us, coded_us, .. } = table;
            [control, data, coded, control_us, data_us, coded_us].map(Clone::clone)
        };
        let (now, was) = (columns(self), columns(before));
        if self.up.len() != before.up.len() {
            return None;
        }
        let grown = |row: usize| -> Option<[u32; 6]> {
            let mut grown = [0; 6];
            for (column, grown) in grown.iter_mut().enumerate() {
                *grown = now[column][row].since(was[column][row])?;
            }
            Some(grown)
        };

        let mut ticks = NodeTicks::default();
        let mut grew: [Vec<u32>; 6] = Default::default();
        for row in 0..self.up.len() {
            let grown = grown(row)?;
            let is_same = self.up[row] == before.up[row] && self.queue[row] == before.queue[row];
            if is_same && grown == [0; 6] {
                continue;
            }
            ticks.row.push(row as u32);
            ticks.queue.push(self.queue[row]);
            ticks.up.push(self.up[row]);
            grew.iter_mut().zip(grown).for_each(|(column, grown)| column.push(grown));
        }
        if self.up == before.up {
            ticks.up.clear();
        }
        ticks.queue = without_zeros(ticks.queue);
        let [control, data, coded, control_us, data_us, coded_us] = grew.map(without_zeros);
        let ticks = NodeTicks { control, data, coded, control_us, data_us, coded_us, ..ticks };
        Some((!ticks.row.is_empty()).then_some(ticks))
    }

    fn apply(&mut self, ticks: &NodeTicks) -> Result<(), Mismatch> {
        let rows = &ticks.row;
        grow(&mut self.control, rows, &ticks.control)?;
        grow(&mut self.data, rows, &ticks.data)?;
        grow(&mut self.coded, rows, &ticks.coded)?;
        grow(&mut self.control_us, rows, &ticks.control_us)?;
        grow(&mut self.data_us, rows, &ticks.data_us)?;
        grow(&mut self.coded_us, rows, &ticks.coded_us)?;
        for (at, row) in rows.iter().enumerate() {
            *place(&mut self.queue, *row)? = ticks.queue.get(at).copied().unwrap_or(0);
            if let Some(up) = ticks.up.get(at) {
                *place(&mut self.up, *row)? = *up;
            }
        }
        Ok(())
    }
}

impl Places {
    /// Returns the nodes that moved.
    fn moves_since(&self, before: &Self) -> Option<Option<Moves>> {
        if self.x_dm.len() != before.x_dm.len() {
            return None;
        }
        let mut moves = Moves::default();
        for row in 0..self.x_dm.len() {
            let x = self.x_dm[row].checked_sub(before.x_dm[row])?;
            let y = self.y_dm[row].checked_sub(before.y_dm[row])?;
            let z = self.z_dm[row].checked_sub(before.z_dm[row])?;
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
        Some((!moves.row.is_empty()).then_some(moves))
    }

    fn apply(&mut self, moves: &Moves) -> Result<(), Mismatch> {
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

impl LinkTable {
    /// Returns the links that changed.
    fn ticks_since(&self, before: &Self) -> Option<Option<LinkTicks>> {
        if self.heard.len() != before.heard.len() {
            return None;
        }
        let mut ticks = LinkTicks::default();
        for row in 0..self.heard.len() {
            let heard = self.heard[row].since(before.heard[row])?;
            let channel = self.channel[row].since(before.channel[row])?;
            let collision = self.collision[row].since(before.collision[row])?;
            let innovative = self.innovative[row].since(before.innovative[row])?;
            let redundant = self.redundant[row].since(before.redundant[row])?;
            if [heard, channel, collision, innovative, redundant] != [0; 5] {
                ticks.row.push(row as u32);
                ticks.heard.push(heard);
                ticks.channel.push(channel);
                ticks.collision.push(collision);
                ticks.innovative.push(innovative);
                ticks.redundant.push(redundant);
            }
            if self.delivery[row] != before.delivery[row] {
                ticks.delivery_row.push(row as u32);
                ticks.delivery.push(self.delivery[row]);
            }
        }
        let is_empty = ticks.row.is_empty() && ticks.delivery_row.is_empty();
        ticks.heard = without_zeros(ticks.heard);
        ticks.channel = without_zeros(ticks.channel);
        ticks.collision = without_zeros(ticks.collision);
        ticks.innovative = without_zeros(ticks.innovative);
        ticks.redundant = without_zeros(ticks.redundant);
        Some((!is_empty).then_some(ticks))
    }

    fn apply(&mut self, ticks: &LinkTicks) -> Result<(), Mismatch> {
        let rows = &ticks.row;
        grow(&mut self.heard, rows, &ticks.heard)?;
        grow(&mut self.channel, rows, &ticks.channel)?;
        grow(&mut self.collision, rows, &ticks.collision)?;
        grow(&mut self.innovative, rows, &ticks.innovative)?;
        grow(&mut self.redundant, rows, &ticks.redundant)?;
        for (row, delivery) in ticks.delivery_row.iter().zip(&ticks.delivery) {
            *place(&mut self.delivery, *row)? = *delivery;
        }
        Ok(())
    }
}

impl TransferState {
    fn tick_since(&self, before: &Self, transfer: u32) -> Option<Option<TransferTick>> {
        // Receivers that joined are at the end, and come with all they have.
        let mut receivers = Vec::new();
        for (at, receiver) in self.receivers.iter().enumerate() {
            let new = ReceiverState { node: receiver.node, ..ReceiverState::default() };
            let was = before.receivers.get(at);
            let change = receiver.tick_since(was.unwrap_or(&new))?;
            receivers.extend(change.filter(|change| was.is_none() || !change.is_empty()));
        }
        let tick = TransferTick {
            transfer,
            stage: changed(&self.stage, &before.stage),
            packets: self.packets.since(before.packets)?,
            forwarders: changed(&self.forwarders, &before.forwarders),
            receivers,
        };
        let nothing = TransferTick { transfer, ..TransferTick::default() };
        Some((tick != nothing).then_some(tick))
    }

    fn apply(&mut self, tick: &TransferTick) -> Result<(), Mismatch> {
        self.stage = tick.stage.unwrap_or(self.stage);
        self.packets.grow(tick.packets);
        if let Some(forwarders) = &tick.forwarders {
            self.forwarders.clone_from(forwarders);
        }
        for change in &tick.receivers {
            let known = self.receivers.iter().position(|receiver| receiver.node == change.node);
            let at = known.unwrap_or_else(|| {
                let node = change.node;
                self.receivers.push(ReceiverState { node, ..ReceiverState::default() });
                self.receivers.len() - 1
            });
            self.receivers[at].apply(change);
        }
        Ok(())
    }
}

impl ReceiverTick {
    /// Returns whether it says nothing.
    fn is_empty(&self) -> bool {
        *self == Self { node: self.node, ..Self::default() }
    }
}

impl ReceiverState {
    fn tick_since(&self, before: &Self) -> Option<Option<ReceiverTick>> {
        let lacks = |list: &[u32], number: &u32| list.binary_search(number).is_err();
        let is_known = |known: bool, was: bool| known || !was;
        if self.node != before.node
            || before.complete.iter().any(|number| lacks(&self.complete, number))
            || !is_known(self.rank.is_some(), before.rank.is_some())
        {
            return None;
        }
        let new = self.complete.iter().filter(|number| lacks(&before.complete, number));
        Some(Some(ReceiverTick {
            node: self.node,
            stage: changed(&self.stage, &before.stage),
            bytes: self.bytes.since(before.bytes)?,
            innovative: self.innovative.since(before.innovative)?,
            redundant: self.redundant.since(before.redundant)?,
            complete: new.copied().collect(),
            rank: self.rank.filter(|_| self.rank != before.rank),
        }))
    }

    fn apply(&mut self, tick: &ReceiverTick) {
        self.stage = tick.stage.unwrap_or(self.stage);
        self.bytes.grow(tick.bytes);
        self.innovative.grow(tick.innovative);
        self.redundant.grow(tick.redundant);
        self.complete.extend(&tick.complete);
        self.complete.sort_unstable();
        self.rank = tick.rank.or(self.rank);
    }
}

impl FlowState {
    fn tick_since(&self, before: &Self, flow: u32) -> Option<Option<FlowTick>> {
        let is_forgotten = |now: Option<f64>, was: Option<f64>| now.is_none() && was.is_some();
        if is_forgotten(self.delay_s, before.delay_s)
            || is_forgotten(self.coded_share, before.coded_share)
            || is_forgotten(self.rtt_s, before.rtt_s)
            || is_forgotten(self.min_rtt_s, before.min_rtt_s)
        {
            return None;
        }
        let tick = FlowTick {
            flow,
            offered: self.offered.since(before.offered)?,
            delivered: self.delivered.since(before.delivered)?,
            bits: self.bits.since(before.bits)?,
            delay_s: self.delay_s.filter(|_| self.delay_s != before.delay_s),
            queue: changed(&self.queue, &before.queue),
            scheme: changed(&self.scheme, &before.scheme),
            why: changed(&self.why, &before.why),
            coded_share: self.coded_share.filter(|_| self.coded_share != before.coded_share),
            rtt_s: self.rtt_s.filter(|_| self.rtt_s != before.rtt_s),
            min_rtt_s: self.min_rtt_s.filter(|_| self.min_rtt_s != before.min_rtt_s),
        };
        let nothing = FlowTick { flow, ..FlowTick::default() };
        Some((tick != nothing).then_some(tick))
    }

    fn apply(&mut self, tick: &FlowTick) {
        self.offered.grow(tick.offered);
        self.delivered.grow(tick.delivered);
        self.bits.grow(tick.bits);
        self.delay_s = tick.delay_s.or(self.delay_s);
        self.queue = tick.queue.unwrap_or(self.queue);
        self.coded_share = tick.coded_share.or(self.coded_share);
        self.rtt_s = tick.rtt_s.or(self.rtt_s);
        self.min_rtt_s = tick.min_rtt_s.or(self.min_rtt_s);
        if let Some(scheme) = &tick.scheme {
            self.scheme.clone_from(scheme);
        }
        if let Some(why) = &tick.why {
            self.why.clone_from(why);
        }
    }
}

impl StreamState {
    fn tick_since(&self, before: &Self, stream: u32) -> Option<Option<StreamTick>> {
        if self.receivers.len() < before.receivers.len() {
            return None;
        }
        let mut receivers = Vec::new();
        for (at, receiver) in self.receivers.iter().enumerate() {
            let new = StreamReceiverState { node: receiver.node, ..Default::default() };
            let was = before.receivers.get(at);
            receivers.extend(receiver.tick_since(was.unwrap_or(&new), was.is_none())?);
        }
        let taken = growth(&self.taken, &before.taken)?;
        let tree = changed(&self.tree, &before.tree);
        let tick = StreamTick { stream, taken, receivers, tree };
        let nothing = StreamTick { stream, ..StreamTick::default() };
        Some((tick != nothing).then_some(tick))
    }

    fn apply(&mut self, tick: &StreamTick) -> Result<(), Mismatch> {
        grow_all(&mut self.taken, &tick.taken);
        if let Some(tree) = &tick.tree {
            self.tree.clone_from(tree);
        }
        for change in &tick.receivers {
            let known = self.receivers.iter().position(|receiver| receiver.node == change.node);
            let at = known.unwrap_or_else(|| {
                let node = change.node;
                self.receivers.push(StreamReceiverState { node, ..Default::default() });
                self.receivers.len() - 1
            });
            self.receivers[at].apply(change);
        }
        Ok(())
    }
}

impl StreamReceiverState {
    fn tick_since(&self, before: &Self, is_new: bool) -> Option<Option<StreamReceiverTick>> {
        if self.node != before.node {
            return None;
        }
        let tick = StreamReceiverTick {
            node: self.node,
            packets: growth(&self.packets, &before.packets)?,
            bits: growth(&self.bits, &before.bits)?,
            problem: changed(&self.problem, &before.problem),
        };
        let nothing = StreamReceiverTick { node: self.node, ..StreamReceiverTick::default() };
        Some((is_new || tick != nothing).then_some(tick))
    }

    fn apply(&mut self, tick: &StreamReceiverTick) {
        grow_all(&mut self.packets, &tick.packets);
        grow_all(&mut self.bits, &tick.bits);
        if let Some(problem) = &tick.problem {
            self.problem.clone_from(problem);
        }
    }
}
