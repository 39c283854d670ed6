//! Parameters of Table I. A few are given, and the others follow from them.

/// Largest bound on a queue that is accepted, packets.
const MAX_BACKLOG: f64 = 1e9;

/// Parameters that the user gives, or that are known of the network. Rates are in packets per slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given {
    /// The weight of utility against backlog (V), above 0.
    pub v: f64,
    /// Packets dropped at once (d_max); `None` for the least allowed.
    pub d_max: Option<u32>,
    /// Gap to the optimum that is allowed for (epsilon), packets per slot; `None` for
    /// [`Given::EPSILON`] times mu_max.
    pub epsilon: Option<f64>,
    /// The value that virtual queues are held around (zeta), packets; `None` for nu_max.
    pub zeta: Option<f64>,
    /// The most packets that enter a source in a slot.
    pub a_max: u32,
    /// The most packets that a link carries in a slot.
    pub mu_max: u32,
    /// The steepest slope of any utility.
    pub theta: f64,
}

impl Given {
    /// Default epsilon in units of mu_max.
    pub const EPSILON: f64 = 0.02;
}

/// All parameters of a policy, consistent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The weight of utility against backlog (V).
    pub v: f64,
    /// Packets dropped or discarded at once (d_max).
    pub d_max: u32,
    /// The most packets that enter a source in a slot (A_max).
    pub a_max: u32,
    /// The most packets that a link carries in a slot (mu_max).
    pub mu_max: u32,
    /// The gap to the optimum that is allowed for (epsilon), packets per slot.
    pub epsilon: f64,
    /// The most that a virtual queue gives in a slot (nu_max), packets.
    pub nu_max: f64,
    /// The most that a virtual queue changes by in a slot (delta_max), packets.
    pub delta_max: f64,
    /// The steepness of virtual pressure (w), per packet.
    pub w: f64,
    /// The value that virtual queues are held around (zeta), packets.
    pub zeta: f64,
    /// The steepest slope of any utility (theta).
    pub theta: f64,
}

/// A parameter with its explanation, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explained {
    /// Its name in the paper, spelled out.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Meaning, and source of the value.
    pub why: &'static str,
}

/// Contradiction in given parameters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParameterError {
    /// A number is not positive.
    #[error("{name} = {value}: allowed is above 0")]
    NotPositive {
        /// Its name.
        name: &'static str,
        /// As it was given.
        value: f64,
    },
    /// d_max is too small to keep queues bounded.
    #[error("d_max = {d_max}: needed is at least A_max + mu_max = {a_max} + {mu_max} (II-A)")]
    SmallBatch {
        /// As it was given.
        d_max: u32,
        /// The most packets that enter a source in a slot.
        a_max: u32,
        /// The most packets that a link carries in a slot.
        mu_max: u32,
    },
    /// Zeta is below nu_max.
    #[error("zeta = {zeta}: needed is at least nu_max = {nu_max} (Table I)")]
    SmallZeta {
        /// As it was given.
        zeta: f64,
        /// The least.
        nu_max: f64,
    },
    /// V theta + 2 d_max is below w.
    #[error(
        "V = {v}: V theta + 2 d_max = {bound} must be at least w = {w} (Table I): take a larger V"
    )]
    SmallV {
        /// As it was given.
        v: f64,
        /// V theta + 2 d_max.
        bound: f64,
        /// The steepness of virtual pressure.
        w: f64,
    },
    /// Queues could grow beyond any memory.
    #[error(
        "V = {v}: with the steepest slope of a utility, theta = {theta}, queues would grow to \
         {MAX_BACKLOG:e} packets and more"
    )]
    LargeV {
        /// As it was given.
        v: f64,
        /// The steepest slope.
        theta: f64,
    },
}

impl Parameters {
    /// Derives all parameters from those given.
    ///
    /// # Errors
    /// [`ParameterError`] if they contradict Table I; it says what is allowed.
    pub fn derive(given: &Given) -> Result<Self, ParameterError> {
        let mu = f64::from(given.mu_max);
        let epsilon = given.epsilon.unwrap_or(Given::EPSILON * mu);
        positive("V", given.v)?;
        positive("epsilon", epsilon)?;
        positive("theta", given.theta)?;

        // Table I. A virtual queue can give off a little more than the fastest link carries (nu_max
        // above mu_max), so it can always be emptied. The smaller the gap epsilon, the smaller w,
        // and the slower pressure follows the virtual queue.
        let nu_max = mu + epsilon / 2.0;
        let delta_max = nu_max.max(mu);
        let derived = Self {
            v: given.v,
            d_max: given.d_max.unwrap_or_else(|| given.a_max.saturating_add(given.mu_max)),
            a_max: given.a_max,
            mu_max: given.mu_max,
            epsilon,
            nu_max,
            delta_max,
            w: epsilon / (delta_max * delta_max) * libm::exp(-epsilon / delta_max),
            zeta: given.zeta.unwrap_or(nu_max),
            theta: given.theta,
        };

        derived.checked()
    }

    /// Checks the inequalities of Table I.
    fn checked(self) -> Result<Self, ParameterError> {
        // A queue takes in at most A_max + mu_max packets in a slot. If fewer could be dropped, it
        // would grow without bound.
        let Self { v, d_max, a_max, mu_max, nu_max, w, zeta, theta, .. } = self;
        if d_max < a_max.saturating_add(mu_max) {
            return Err(ParameterError::SmallBatch { d_max, a_max, mu_max });
        }

        // Virtual queues must be able to fall by nu_max from their central value without ending
        // below 0.
        if zeta.is_nan() || zeta < nu_max {
            return Err(ParameterError::SmallZeta { zeta, nu_max });
        }
        if self.q_bound() < w {
            return Err(ParameterError::SmallV { v, bound: self.q_bound(), w });
        }
        if self.q_bound() > MAX_BACKLOG {
            return Err(ParameterError::LargeV { v, theta });
        }
        Ok(self)
    }

    /// Returns the backlog above which packets leave the network: V theta, packets.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.v * self.theta
    }

    /// Returns the virtual queue whose pressure is V theta, where it begins.
    pub(crate) fn first_z(&self) -> f64 {
        (self.zeta + libm::log(self.threshold() / self.w) / self.w).max(0.0)
    }

    /// Returns the bound on transmission queues, packets (Lemmas 1 and 2).
    #[must_use]
    pub fn q_bound(&self) -> f64 {
        self.threshold() + 2.0 * f64::from(self.d_max)
    }

    /// Returns the bound on drop queues, packets (Lemmas 1 and 2).
    #[must_use]
    pub fn d_bound(&self) -> f64 {
        self.threshold() + f64::from(self.d_max)
    }

    /// Returns the bound on virtual queues, packets (Lemma 2).
    #[must_use]
    pub fn z_bound(&self) -> f64 {
        self.zeta + libm::log(self.q_bound() / self.w) / self.w + f64::from(self.mu_max)
    }

    /// Returns each parameter with what it is and where its value comes from.
    #[must_use]
    pub fn explained(&self) -> [Explained; 10] {
        let row = |name, value, why| Explained { name, value, why };
        [
            row(
                "V",
                self.v,
                "weight of utility against backlog: the gap shrinks like 1/V, queues grow like V",
            ),
            row("d_max", self.d_max.into(), "packets dropped at once: at least A_max + mu_max"),
            row(
                "A_max",
                self.a_max.into(),
                "most packets that enter a source in a slot; others wait there",
            ),
            row("mu_max", self.mu_max.into(), "most packets that any link carries in a slot"),
            row(
                "epsilon",
                self.epsilon,
                "utility gap parameter, packets per slot: smaller is nearer the optimum and slower",
            ),
            row(
                "nu_max",
                self.nu_max,
                "most that a virtual queue gives in a slot: mu_max + epsilon / 2",
            ),
            row(
                "delta_max",
                self.delta_max,
                "most that a virtual queue changes by in a slot: max(nu_max, mu_max)",
            ),
            row(
                "w",
                self.w,
                "steepness of virtual pressure: epsilon / delta_max^2 exp(-epsilon / delta_max)",
            ),
            row("zeta", self.zeta, "virtual queues are held around it: at least nu_max"),
            row(
                "theta",
                self.theta,
                "steepest slope of any utility; packets leave from a backlog of V theta on",
            ),
        ]
    }
}

fn positive(name: &'static str, value: f64) -> Result<(), ParameterError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(ParameterError::NotPositive { name, value })
}
