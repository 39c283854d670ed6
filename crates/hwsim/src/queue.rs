//! Frames of a radio that wait for the channel.

use std::collections::VecDeque;

use crate::message::Sent;

/// Most frames that wait. The kernel's module keeps 200 that it waits for.
const MOST_FRAMES: usize = 256;
/// Number of queues: management, voice, video, best effort, background.
const QUEUES: usize = 5;
/// Length of a MAC header before the field of its quality of service, bytes.
const BEFORE_QOS: usize = 24;

/// Frames in the order in which they are sent: those of a higher class first.
///
/// Classes do not contend with windows of their own: all stations have those of the plain
/// distributed coordination function.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    queues: [VecDeque<Sent>; QUEUES],
}

impl Queue {
    /// Takes a frame. Returns it if there is no room.
    pub(crate) fn push(&mut self, frame: Sent) -> Result<(), Sent> {
        if self.queues.iter().map(VecDeque::len).sum::<usize>() >= MOST_FRAMES {
            return Err(frame);
        }

        self.queues[class(&frame.frame)].push_back(frame);
        Ok(())
    }

    /// Takes out the next frame.
    pub(crate) fn pop(&mut self) -> Option<Sent> {
        self.queues.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Returns whether no frame waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

/// Returns the class of a frame, 0 for the first.
fn class(frame: &[u8]) -> usize {
    // Frame control: type in bits 2 and 3, subtype above, of which bit 7 says that there is a field
    // for the quality of service.
    let control = frame.first().copied().unwrap_or_default();
    if control & 0x0C != 0x08 {
        return 0;
    }

    let priority = match frame.get(BEFORE_QOS) {
        Some(qos) if control & 0x80 != 0 => qos & 7,
        _ => 0,
    };

    // IEEE 802.11-2016, table 10-1.
    match priority {
        6 | 7 => 1,
        4 | 5 => 2,
        1 | 2 => 4,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(control: u8, qos: u8, cookie: u64) -> Sent {
        let mut bytes = vec![0; BEFORE_QOS + 2];
        (bytes[0], bytes[BEFORE_QOS]) = (control, qos);
        Sent {
            radio: [0; 6],
            frame: bytes,
            flags: 0,
            rates: Default::default(),
            cookie,
            frequency_mhz: None,
        }
    }

    #[test]
    fn higher_classes_go_first_and_within_a_class_the_oldest() {
        let mut queue = Queue::default();
        // Background, best effort twice, plain data, voice, a beacon.
        for (at, (control, qos)) in
            [(0x88, 1), (0x88, 0), (0x88, 3), (0x08, 7), (0x88, 6), (0x80, 0)]
                .into_iter()
                .enumerate()
        {
            queue.push(frame(control, qos, at as u64)).unwrap();
        }
        let order: Vec<_> = core::iter::from_fn(|| queue.pop()).map(|frame| frame.cookie).collect();
        assert_eq!(order, [5, 4, 1, 2, 3, 0]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_refuses() {
        let mut queue = Queue::default();
        for at in 0..MOST_FRAMES {
            queue.push(frame(0x08, 0, at as u64)).unwrap();
        }
        assert_eq!(queue.push(frame(0x80, 0, 999)).unwrap_err().cookie, 999);
    }
}
