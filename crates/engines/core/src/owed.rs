//! Answers that are owed to the nodes before this one, and how copies of one are told from the next.

use super::frame::Name;
use ncmesh_wire::NodeId;
use std::collections::VecDeque;

/// Answers that wait to be sent.
const MAX_OWED: usize = 64;

/// How a generation stands here, for the node before. What is said is as of when it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub name: Name,
    pub number: u16,
    /// It was asked for before, in vain.
    pub again: bool,
    /// How often it was sent: copies, or such as the MAC gave up.
    pub sent: u32,
}

/// All of them, at most one of a generation.
#[derive(Debug, Default)]
pub(super) struct Owed {
    waiting: VecDeque<Answer>,
    /// By unicast, until the MAC reports.
    on_air: Option<Answer>,
}

impl Owed {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.waiting.iter().any(|answer| answer.name == *name)
    }

    /// A new answer, in the place of one that is being given. Says whether there was room for it, or else the oldest is gone.
    pub(super) fn owe(&mut self, name: Name, number: u16, again: bool) -> bool {
        let answer = Answer { name, number, again, sent: 0 };
        if let Some(given) = self.waiting.iter_mut().find(|given| given.name == name) {
            *given = answer;
            return true;
        }
        let has_room = self.waiting.len() < MAX_OWED;
        if !has_room {
            self.waiting.pop_front();
        }
        self.waiting.push_back(answer);
        has_room
    }

    /// The node before has heeded an answer: no more copies of it.
    pub(super) fn heeded(&mut self, is_heeded: impl Fn(&Name) -> bool) {
        self.waiting.retain(|answer| answer.sent == 0 || !is_heeded(&answer.name));
    }

    pub(super) fn next(&mut self) -> Option<Answer> {
        self.waiting.pop_front()
    }

    /// An answer goes on the air, one of so many broadcasts of it; without, by unicast.
    pub(super) fn sends(&mut self, answer: Answer, copies: Option<u32>) {
        let answer = Answer { sent: answer.sent + 1, ..answer };
        match copies {
            None => self.on_air = Some(answer),
            Some(copies) if answer.sent < copies => self.waiting.push_back(answer),
            Some(_) => {}
        }
    }

    /// Something else goes on the air.
    pub(super) fn rests(&mut self) {
        self.on_air = None;
    }

    /// What the MAC made of what is on the air. Given up, it is sent again, so many times at most, unless there is a newer one.
    pub(super) fn reported(&mut self, failed: bool, again: u32) {
        let answer = self.on_air.take().filter(|answer| failed && answer.sent <= again);
        if let Some(answer) = answer.filter(|answer| !self.contains(&answer.name)) {
            self.waiting.push_back(answer);
        }
    }
}

/// The last question or answer that was heard of a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latest(Option<(NodeId, u64, u16)>);

impl Latest {
    /// Whether one with this number of a neighbour, in this epoch of its, is neither a copy of it nor older.
    pub(super) fn is_news(&mut self, sender: NodeId, epoch: u64, number: u16) -> bool {
        let is_newer = |last: u16| (1..=u16::MAX / 2).contains(&number.wrapping_sub(last));
        let known = self.0.filter(|(by, start, _)| (*by, *start) == (sender, epoch));
        let is_news = known.is_none_or(|(.., last)| is_newer(last));
        if is_news {
            self.0 = Some((sender, epoch, number));
        }
        is_news
    }
}
