//! Names of the schemes of this build, for `--help`.

use ncmesh_engine::registry::{AUTO, ServiceKind};
use ncmesh_engines::registry;

/// Returns what `--scheme` says of the schemes of a service.
pub(crate) fn scheme_help(service: ServiceKind) -> String {
    let default = registry().of(service).next().map_or("none in this build", |entry| entry.name);
    format!("The {} scheme: {}; or {AUTO}, which is {default}", service.name(), names(service))
}

/// Returns what `--scheme` says of the schemes of a scenario.
#[cfg(feature = "lab")]
pub(crate) fn scenario_schemes_help() -> String {
    let [file, tunnel, stream] = ServiceKind::ALL;
    let all = [(file, "file"), (tunnel, "flows"), (stream, "streams")];
    let parts = all.map(|(service, traffic)| format!("{} for the {traffic}", names(service)));
    format!(
        "The scheme: {}. It carries that part of the traffic alone. For several parts at once: \
         file=SCHEME,tunnel=SCHEME,stream=SCHEME. With {AUTO} all traffic is carried, by the \
         scenario's schemes or else the default ones",
        parts.join("; ")
    )
}

/// Returns the names of the schemes of a service, the default first.
fn names(service: ServiceKind) -> String {
    let names: Vec<&str> = registry().of(service).map(|entry| entry.name).collect();
    match names.as_slice() {
        [] => "none in this build".into(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_the_schemes_and_the_default() {
        let help = scheme_help(ServiceKind::File);
        assert!(help.starts_with("The file scheme: cascade, pacifier, "), "{help}");
        assert!(help.ends_with(" or tree_flood; or auto, which is cascade"), "{help}");
    }
}
