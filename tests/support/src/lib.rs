//! Helper for tests that need more than every machine has: rights, programs, kernel features.

use std::env;
use std::fmt::Display;

/// Says why a test cannot run here. The caller then returns.
///
/// Continuous integration is set up for every test, so a skipped one there would hide that it never
/// ran.
///
/// # Panics
/// If `CI` is in the environment.
#[track_caller]
pub fn skip(reason: impl Display) {
    assert!(env::var_os("CI").is_none(), "this test may not be skipped where CI is set: {reason}");
    println!("SKIPPED: {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    /// Set in the process that this test starts.
    const CHILD: &str = "NCMESH_TEST_SKIPS";

    /// Runs this test again as a process whose environment has `CI`, or not.
    fn run_skipped(has_ci: bool) -> Output {
        let mut test = Command::new(env::current_exe().unwrap());
        test.args(["tests::a_skip_fails_where_ci_is_set", "--exact", "--nocapture"]);
        test.env(CHILD, "").env_remove("CI");
        if has_ci {
            test.env("CI", "true");
        }
        test.output().unwrap()
    }

    #[test]
    fn a_skip_fails_where_ci_is_set() {
        if env::var_os(CHILD).is_some() {
            return skip("there is no radio here");
        }
        let told = |output: &Output| {
            let all = [&output.stdout[..], &output.stderr].concat();
            assert!(String::from_utf8_lossy(&all).contains("there is no radio here"), "{output:?}");
        };
        let elsewhere = run_skipped(false);
        assert!(elsewhere.status.success(), "{elsewhere:?}");
        told(&elsewhere);
        let in_ci = run_skipped(true);
        assert!(!in_ci.status.success(), "{in_ci:?}");
        told(&in_ci);
    }
}
