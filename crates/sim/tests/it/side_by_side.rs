//! A scenario runs its file, its flows and its streams at once.

use crate::support::{HIDDEN_LINE, outcome_of};
use ncmesh_sim::Outcome;

const FILE: &str = "traffic = { from = \"a\", to = [\"c\"], size = \"300kB\" }\n";

const FLOWS: &str = r#"flow = [{ from = "c", to = "a", rate = "80k", packet = 1000, seconds = 8 }]
"#;

const STREAM: &str = r#"
[[stream]]
group = "tv"
from = "b"
layers = [{ name = "base", rate = "100k" }]
receivers = [{ node = "c" }]
seconds = 6
"#;

fn outcome(traffic: &str, schemes: &str) -> Outcome {
    outcome_of(&format!("{HIDDEN_LINE}{traffic}"), schemes, 100)
}

#[test]
fn all_services_run_at_once_and_each_has_its_result() {
    let all = outcome(&[FILE, FLOWS, STREAM].concat(), "auto");
    assert_eq!(all.scheme, "file=cascade,tunnel=braid,stream=delta");

    // The run lasts as long as the longest service. The file is sent while the others run.
    assert!((8.0..8.1).contains(&all.seconds), "{}", all.seconds);
    let receiver = &all.transfer().unwrap().receivers[0];
    assert!(receiver.verified && receiver.seconds.unwrap() < 6.0, "{receiver:?}");
    let flow = &all.flows().unwrap().flows[0];
    assert!(flow.seconds == 8.0 && flow.delivered >= 60, "{flow:?}");
    let stream = &all.streams().unwrap().streams[0];
    assert!(stream.seconds == 6.0 && stream.receivers[0].layers[0].share > 0.5, "{stream:?}");
}

#[test]
fn a_file_that_outlasts_the_flows_does_not_change_their_measurement() {
    let file = FILE.replace("300kB", "4MB");
    let both = outcome(&[&file, FLOWS].concat(), "auto");
    assert!(both.seconds > 9.0, "{}", both.seconds);
    assert!(both.transfer().unwrap().receivers[0].verified);
    assert_eq!(both.flows().unwrap().flows[0].seconds, 8.0);
}

#[test]
fn a_named_scheme_runs_its_service_as_if_there_were_no_other() {
    let all = [FILE, FLOWS, STREAM].concat();
    for (alone, scheme) in [(FILE, "more"), (FLOWS, "xor"), (STREAM, "multirate")] {
        let hash = |traffic: &str| outcome(traffic, scheme).trace.unwrap().trace_hash;
        assert_eq!(hash(&all), hash(alone), "{scheme}");
    }
}

#[test]
fn several_files_are_sent_at_once_and_each_has_its_result() {
    let files = r#"
[[traffic]]
from = "a"
to = ["c"]
size = "300kB"

[[traffic]]
from = "c"
to = ["b", "a"]
size = "200kB"
"#;
    let both = outcome(files, "cascade");
    let transfer = both.transfer().unwrap();
    assert_eq!(transfer.bytes, 500_000);
    let received = transfer.receivers.iter().map(|r| (r.file, r.node.as_str(), r.bytes));
    let expected = [(0, "c", 300_000), (1, "b", 200_000), (1, "a", 200_000)];
    assert_eq!(received.collect::<Vec<_>>(), expected);
    assert!(transfer.receivers.iter().all(|r| r.verified), "{transfer:?}");

    // The run lasts until the last file has arrived.
    let times = transfer.receivers.iter().map(|r| r.seconds.unwrap());
    assert!(both.seconds >= times.fold(0.0, f64::max), "{both:?}");
    assert_eq!(both.sharing, None, "one service ran");
}

#[test]
fn a_list_of_one_file_is_the_table() {
    let hash = |traffic: &str| outcome(traffic, "cascade").trace.unwrap().trace_hash;
    let list = FILE.replace("= {", "= [{").replace("}\n", "}]\n");
    assert_eq!(hash(FILE), hash(&list));
}

#[test]
fn the_outcome_tells_how_services_shared_the_channel() {
    let all = outcome(&[FILE, FLOWS, STREAM].concat(), "auto");
    let sharing = all.sharing.as_ref().unwrap();
    let names: Vec<_> = sharing.airtime.keys().map(String::as_str).collect();
    assert_eq!(names, ["file", "stream", "tunnel"]);
    assert!(sharing.airtime.values().all(|share| *share > 0.01), "{sharing:?}");
    // The file needs most of the air, so the index is below 1.
    assert!((0.4..0.999).contains(&sharing.fairness), "{sharing:?}");
    let file = all.transfer().unwrap().receivers[0].seconds.unwrap();
    assert!(sharing.seconds >= file && sharing.seconds < 6.1, "{sharing:?}");
}
