//! Where nodes that move are at which time.

use ncmesh_engine::time::Duration;

/// Movement of all nodes of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Mobility {
    /// Time between two moves of the nodes.
    pub step: Duration,
    /// The path of each node, by index.
    pub paths: Vec<Path>,
}

/// Where a node is at which time: at least one point, in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path(pub(super) Vec<(f64, [f64; 3])>);

impl Path {
    /// Returns the position, m, at a time, s.
    #[must_use]
    pub fn at(&self, time_s: f64) -> [f64; 3] {
        let next = self.0.partition_point(|(time, _)| *time <= time_s);
        let (Some(before), after) = (next.checked_sub(1).map(|i| self.0[i]), self.0.get(next))
        else {
            return self.0.first().map_or([0.0; 3], |(_, position)| *position);
        };
        let Some(after) = after else { return before.1 };
        let share = (time_s - before.0) / (after.0 - before.0);
        std::array::from_fn(|axis| before.1[axis] + share * (after.1[axis] - before.1[axis]))
    }

    /// Returns the time of the last point, s.
    #[must_use]
    pub fn end(&self) -> Option<f64> {
        self.0.last().map(|(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stands_before_its_first_point_and_after_its_last() {
        let path = Path(vec![(10.0, [0.0, 0.0, 1.0]), (20.0, [100.0, -50.0, 1.0])]);
        let times = [0.0, 10.0, 12.5, 20.0, 1e8];
        let xs: Vec<f64> = times.iter().map(|time| path.at(*time)[0]).collect();
        assert_eq!(xs, [0.0, 0.0, 25.0, 100.0, 100.0]);
        assert_eq!(path.at(15.0), [50.0, -25.0, 1.0]);
    }
}
