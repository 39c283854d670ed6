//! Paths in configurations and scenarios: `~` and variables, as people write them for a shell.

use std::path::PathBuf;

/// Returns a path with `~/` as the user's home, and `$NAME` and `${NAME}` as variables of the
/// environment.
///
/// # Errors
/// One line that says what cannot be expanded.
pub fn expand(path: &str) -> Result<PathBuf, String> {
    expanded(path, |name| std::env::var(name).ok()).map(PathBuf::from)
}

/// Like [`expand`], with variables that `variable` returns.
fn expanded(path: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let value = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("the path {path:?}: the variable {name} is not set"))
    };

    let mut whole = String::new();
    let mut rest = path;

    // As a shell does: the home of the user.
    if let Some(behind) = rest.strip_prefix('~') {
        if !(behind.is_empty() || behind.starts_with('/')) {
            let problem = "homes of other users are not known: give the whole path";
            return Err(format!("the path {path:?}: {problem}, or \"./~...\" for such a name"));
        }

        whole += &value("HOME")?;
        rest = behind;
    }

    // Variables, with braces or without.
    while let Some((before, behind)) = rest.split_once('$') {
        whole += before;
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = match behind.strip_prefix('{') {
            Some(braced) => braced
                .split_once('}')
                .filter(|(name, _)| !name.is_empty() && name.chars().all(is_of_name))
                .ok_or_else(|| format!("the path {path:?}: allowed is $NAME or ${{NAME}}"))?,
            None => behind.split_at(behind.find(|c| !is_of_name(c)).unwrap_or(behind.len())),
        };

        // A sign without a name, such as in `a$.txt`, is part of the file's name.
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            whole += "$";
            rest = behind;
            continue;
        }

        whole += &value(name)?;
        rest = after;
    }

    Ok(whole + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        let known = [("HOME", "/home/ann"), ("MESH", "roof"), ("EMPTY", "")];
        known.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn paths_are_expanded_as_a_shell_does() {
        for (path, whole) in [
            ("st", "st"),
            ("/var/lib/x", "/var/lib/x"),
            ("~", "/home/ann"),
            ("~/st", "/home/ann/st"),
            ("./~", "./~"),
            ("a/~/b~", "a/~/b~"),
            ("$HOME/st", "/home/ann/st"),
            ("${HOME}st", "/home/annst"),
            ("/srv/$MESH-$MESH/${MESH}", "/srv/roof-roof/roof"),
            ("a$.txt", "a$.txt"),
            ("5$", "5$"),
            ("$1", "$1"),
            ("größe", "größe"),
        ] {
            assert_eq!(expanded(path, variable).as_deref(), Ok(whole), "{path}");
        }
    }

    #[test]
    fn paths_that_cannot_be_expanded_are_refused() {
        for (path, problem) in [
            ("~bob/st", "homes of other users are not known"),
            ("$NONE/st", "the variable NONE is not set"),
            ("${NONE}", "the variable NONE is not set"),
            ("$EMPTY/st", "the variable EMPTY is not set"),
            ("${HOME", "allowed is $NAME or ${NAME}"),
            ("${HO ME}", "allowed is $NAME or ${NAME}"),
            ("${}", "allowed is $NAME or ${NAME}"),
        ] {
            let error = expanded(path, variable).unwrap_err();
            assert!(error.contains(problem), "{path}: {error}");
        }
        assert!(expanded("~/st", |_| None).unwrap_err().contains("HOME is not set"));
    }
}
