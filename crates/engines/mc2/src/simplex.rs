//! Linear programs with few variables whose origin is feasible, by the simplex method.

/// Numbers below this are rounding errors.
const ACCURACY: f64 = 1e-9;
/// Most pivots. Each leaves a feasible solution, so that what was found by then is a lower bound.
const MAX_PIVOTS: usize = 2000;

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
        self.limits.push(limit);
    }

    /// Returns the maximum, or a value of at least `enough` as soon as one is found.
    pub(crate) fn maximum(mut self, enough: f64) -> f64 {
        // Each column stands for a variable that is 0, each row for one that is not. Variables are
        // numbered first, then the slack of each limit.
        let (columns, rows) = (self.objective.len(), self.limits.len());
        let mut zero: Vec<usize> = (0..columns).collect();
        let mut basic: Vec<usize> = (columns..columns + rows).collect();
        let mut value = 0.0;

        // Bland's rule: of the columns that improve the sum, and of the rows that limit the step,
        // the variable with the lowest number. It never cycles, although most limits are 0.
        for _ in 0..MAX_PIVOTS {
            let improving = (0..columns).filter(|column| self.objective[*column] > ACCURACY);
            let Some(column) = improving.min_by_key(|column| zero[*column]) else { break };
            let step = |row: usize| self.limits[row] / self.factors[row][column];
            let limiting = (0..rows).filter(|row| self.factors[*row][column] > ACCURACY);
            let nearest = limiting
                .min_by(|a, b| step(*a).total_cmp(&step(*b)).then(basic[*a].cmp(&basic[*b])));
            let Some(row) = nearest else { return f64::INFINITY };

            value += self.objective[column] * step(row);
            self.pivot(row, column);
            std::mem::swap(&mut zero[column], &mut basic[row]);
            if value >= enough {
                break;
            }
        }
        value
    }

    /// Exchanges the variable of a column for that of a row.
    fn pivot(&mut self, row: usize, column: usize) {
        let pivot = self.factors[row][column];
        self.factors[row][column] = 1.0;
        self.factors[row].iter_mut().for_each(|factor| *factor /= pivot);
        self.limits[row] = (self.limits[row] / pivot).max(0.0);

        let (exchanged, limit) = (self.factors[row].clone(), self.limits[row]);
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
