//! Linear programs with few variables whose origin is feasible, by the simplex method.

/// Numbers below this are rounding errors.
const ACCURACY: f64 = 1e-9;
/// Most that a limit is raised by. Most limits are 0, so that most pivots would change nothing;
/// with limits that are all a little different each one gains. The maximum is too high by no more
/// than this for each limit.
const MAX_RAISE: f64 = 1e-8;
/// Multiples of it, without their whole part, are spread evenly.
const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;
/// Most pivots. The largest programs that paths pose take 200 to 400, some 10 ms.
const MAX_PIVOTS: usize = 1000;

/// Program: maximise a sum of variables, each at least 0, under limits on other sums of them.
#[derive(Debug)]
pub(crate) struct Program {
    /// Factors of the sum to maximise.
    objective: Vec<f64>,
    /// Factors of each limited sum.
    factors: Vec<Vec<f64>>,
    /// Limit of each sum, at least 0.
    limits: Vec<f64>,
}

impl Program {
    /// Returns a program without limits that maximises the sum with these factors.
    pub(crate) fn new(objective: Vec<f64>) -> Self {
        Self { objective, factors: Vec::new(), limits: Vec::new() }
    }

    /// Adds a limit on the sum of `terms`, which are variables with their factors.
    pub(crate) fn limit(&mut self, terms: impl IntoIterator<Item = (usize, f64)>, limit: f64) {
        let mut row = vec![0.0; self.objective.len()];
        for (variable, factor) in terms {
            row[variable] += factor;
        }
        self.factors.push(row);

        // Between a half and the whole of the most, each limit another share.
        let share = (1.0 + (self.limits.len() as f64 * GOLDEN_RATIO).fract()) / 2.0;
        self.limits.push(limit + MAX_RAISE * share);
    }

    /// Returns the maximum, or a value of at least `enough` as soon as one is found. Returns `None`
    /// if neither is found within [`MAX_PIVOTS`].
    pub(crate) fn maximum(mut self, enough: f64) -> Option<f64> {
        // Each column stands for a variable that is 0, each row for one that is not. Which ones
        // they are does not matter for the value.
        let columns = self.objective.len();
        let rows = self.limits.len();
        let mut value = 0.0;
        for _ in 0..MAX_PIVOTS {
            // The column that improves the sum most for each unit, and of the rows the one that
            // limits the step.
            let improving = (0..columns).filter(|column| self.objective[*column] > ACCURACY);
            let steepest =
                improving.max_by(|a, b| self.objective[*a].total_cmp(&self.objective[*b]));
            let Some(column) = steepest else { return Some(value) };
            let step = |row: usize| self.limits[row] / self.factors[row][column];
            let limiting = (0..rows).filter(|row| self.factors[*row][column] > ACCURACY);
            let nearest = limiting.min_by(|a, b| step(*a).total_cmp(&step(*b)));
            let Some(row) = nearest else { return Some(f64::INFINITY) };

            value += self.objective[column] * step(row);
            self.pivot(row, column);
            if value >= enough {
                return Some(value);
            }
        }

        None
    }

    /// Exchanges the variable of a column for that of a row.
    fn pivot(&mut self, row: usize, column: usize) {
        let pivot = self.factors[row][column];
        self.factors[row][column] = 1.0;
        self.factors[row].iter_mut().for_each(|factor| *factor /= pivot);
        self.limits[row] = (self.limits[row] / pivot).max(0.0);

        let exchanged = self.factors[row].clone();
        let limit = self.limits[row];
        let subtract = |from: &mut Vec<f64>| {
            let times = std::mem::take(&mut from[column]);
            from.iter_mut().zip(&exchanged).for_each(|(to, of)| *to -= times * of);
            times
        };

        for (other, factors) in self.factors.iter_mut().enumerate() {
            if other != row {
                let times = subtract(factors);
                self.limits[other] = (self.limits[other] - times * limit).max(0.0);
            }
        }

        subtract(&mut self.objective);
    }
}
