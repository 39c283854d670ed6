//! Roll-outs of router images over real daemons. The hooks of these nodes write into files what
//! they would do to a router.

use crate::support::{INBOX, Node, assert_fails, contents, net::Segment, run, wait_until};
use ncmesh_node::api::fleet::{FleetEvent, FleetNode, FleetRollout, FleetStatus};
use ncmesh_node::api::types::Peer;
use std::fs;
use std::path::{Path, PathBuf};

/// Size of an image, bytes: a few seconds at the rate of these nodes.
const SIZE: usize = 1_500_000;

/// Directory of a test with the keys and images of its people.
struct Town {
    dir: PathBuf,
    signer: String,
    operator: String,
}

impl Town {
    fn new(dir: &Path) -> Self {
        let key = |name: &str| {
            let made = run(&["fleet", "keygen", dir.join(name).to_str().unwrap()]);
            assert!(made.status.success(), "{made:?}");
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        };
        Self { dir: dir.to_owned(), signer: key("signer.key"), operator: key("operator.key") }
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Writes a release with an image for each of two models. Returns the path of its manifest.
    fn release(&self, version: &str, is_signed: bool) -> String {
        fs::write(self.dir.join("a.bin"), contents(SIZE, 1)).unwrap();
        fs::write(self.dir.join("b.bin"), contents(SIZE / 2, 2)).unwrap();
        let file = self.path(&format!("{version}.manifest"));
        let a = format!("wdr4300={}", self.path("a.bin"));
        let b = format!("cpe210={}", self.path("b.bin"));
        let pack = ["fleet", "pack", "town", version, "--image", &a, "--image", &b, "--out", &file];
        assert!(run(&pack).status.success());
        if is_signed {
            let signed = run(&["fleet", "sign", &file, "--key", &self.path("signer.key")]);
            assert!(signed.status.success(), "{signed:?}");
        }
        file
    }

    /// Returns a node that takes part. `hooks` are further lines of `[fleet]`.
    fn node(&self, segment: &Segment, id: u16, model: &str, hooks: &str) -> Node {
        let dir = self.dir.join(format!("n{id}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("version"), "1.0\n").unwrap();
        let at = dir.display();
        let section = format!(
            "[fleet]\nmodel = \"{model}\"\nversion_file = \"version\"\nname = \"town\"\n\
             keys = [\"{}\"]\noperators = [\"{}\"]\n\
             rollback = [\"sh\", \"-c\", \"echo 1.0 > {at}/version\"]\n\
             confirm = [\"sh\", \"-c\", \"touch {at}/confirmed\"]\n{hooks}\n",
            self.signer, self.operator,
        );
        Node::new(&dir, segment.host(usize::from(id)), id, &format!("{section}{INBOX}"))
    }

    /// Returns the hook that installs an image without a restart.
    fn install(&self, id: u16) -> String {
        let at = self.dir.join(format!("n{id}")).display().to_string();
        format!(
            "apply = [\"sh\", \"-c\", \
             \"cp $NCMESH_IMAGE {at}/installed && echo $NCMESH_VERSION > {at}/version\"]"
        )
    }

    /// Returns the line by which a node leads roll-outs.
    fn leads(&self) -> String {
        format!("operator_key = \"{}\"", self.path("operator.key"))
    }

    fn read(&self, id: u16, file: &str) -> Vec<u8> {
        fs::read(self.dir.join(format!("n{id}/{file}"))).unwrap_or_default()
    }

    fn version(&self, id: u16) -> String {
        String::from_utf8(self.read(id, "version")).unwrap().trim().to_owned()
    }
}

fn rollout(node: &Node) -> FleetRollout {
    node.ask::<FleetStatus>(&["fleet", "status"]).rollout.unwrap()
}

fn of(node: &Node, id: u16) -> Option<FleetNode> {
    rollout(node).nodes.into_iter().find(|node| node.id == id)
}

/// Waits until the operator knows each of these nodes as one that is so far.
#[track_caller]
fn wait_for(operator: &Node, ids: &[u16], standing: &str) {
    wait_until(&format!("{ids:?} {standing}"), || {
        let is = |id: &u16| {
            of(operator, *id).is_some_and(|node| node.standing.as_deref() == Some(standing))
        };
        ids.iter().all(is)
    });
}

#[track_caller]
fn succeeds(node: &Node, args: &[&str]) {
    let output = node.call(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}\n{}", node.log());
}

#[test]
fn a_release_reaches_two_models_and_a_node_that_was_off() {
    let Some(segment) = Segment::new(4) else { return };
    // The last one is two hops away from the operator.
    if !segment.silence(4, "10.77.0.1") || !segment.silence(1, "10.77.0.4") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let town = Town::new(dir.path());
    let manifest = town.release("1.1", true);
    let leads = format!("{}\n{}", town.install(1), town.leads());
    let mut n1 = town.node(&segment, 1, "wdr4300", &leads);
    let mut n2 = town.node(&segment, 2, "wdr4300", &town.install(2));
    let mut n3 = town.node(&segment, 3, "cpe210", &town.install(3));
    let mut n4 = town.node(&segment, 4, "cpe210", &town.install(4));
    [&mut n1, &mut n2, &mut n3].into_iter().for_each(Node::start);
    n1.wait_for_peers(&["n2", "n3"]);

    succeeds(&n1, &["fleet", "push", &manifest, "--airtime", "50%"]);
    wait_for(&n1, &[1, 2, 3], "staged");
    // Nothing is installed, and the inbox stays free for files of people.
    assert_eq!(town.version(2), "1.0");
    assert_eq!(fs::read_dir(n2.dir.join("inbox")).unwrap().count(), 1);

    // It comes up after the push.
    n4.start();
    wait_for(&n1, &[4], "staged");
    succeeds(&n1, &["fleet", "apply", "--batch", "2", "--wait"]);
    for (id, image) in [(1, "a.bin"), (2, "a.bin"), (3, "b.bin"), (4, "b.bin")] {
        assert_eq!(town.version(id), "1.1");
        assert_eq!(town.read(id, "installed"), fs::read(dir.path().join(image)).unwrap());
        wait_until("the image is confirmed", || {
            dir.path().join(format!("n{id}/confirmed")).exists()
        });
    }
    let status = rollout(&n1);
    assert_eq!((status.stage.as_str(), status.batches), ("done", 3));
    assert_eq!(of(&n1, 1).unwrap().batch, Some(3));
    let text = String::from_utf8(n1.call(&["fleet", "status"]).stdout).unwrap();
    assert!(text.contains("town 1.1: done") && text.contains("cpe210"), "{text}");

    succeeds(&n1, &["fleet", "rollback"]);
    wait_for(&n1, &[1, 2, 3, 4], "rolled_back");
    assert_eq!(town.version(4), "1.0");
}

#[test]
fn nodes_and_operator_that_are_killed_go_on() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let town = Town::new(dir.path());
    let manifest = town.release("1.1", true);
    let leads = format!("{}\n{}", town.install(1), town.leads());
    let mut n1 = town.node(&segment, 1, "cpe210", &leads);
    // This one has a router's hook, which is over when the router restarts.
    let at = dir.path().join("n2").display().to_string();
    let apply = format!("apply = [\"sh\", \"-c\", \"touch {at}/restarts\"]");
    let mut n2 = town.node(&segment, 2, "wdr4300", &apply);
    n1.start();
    n2.start();
    n1.wait_for_peers(&["n2"]);

    succeeds(&n1, &["fleet", "push", &manifest]);
    let arrived = |node: &Node| {
        let transfers = node.transfers();
        transfers.iter().any(|t| t.size == SIZE as u64 && t.values.bytes > SIZE as u64 / 8)
    };
    wait_until("a part of the image", || arrived(&n2));
    n2.kill();
    n1.kill();
    n2.start();
    n1.start();
    wait_for(&n1, &[1, 2], "staged");
    assert!(n2.log().contains("resumed with"), "{}", n2.log());

    succeeds(&n1, &["fleet", "apply"]);
    wait_until("the image is installed", || dir.path().join("n2/restarts").exists());
    n2.kill();
    n1.kill();
    fs::write(dir.path().join("n2/version"), "1.1\n").unwrap();
    n1.start();
    n2.start();
    wait_until("the roll-out is done", || rollout(&n1).stage == "done");
    assert_eq!(of(&n1, 2).unwrap().running.as_deref(), Some("1.1"));
}

#[test]
fn a_release_that_too_few_signed_is_refused() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let town = Town::new(dir.path());
    let manifest = town.release("1.1", false);
    // This operator does not take part, so it has no keys to check with. The other node has.
    let section = format!("[fleet]\n{}\n", town.leads());
    let mut n1 = Node::new(&dir.path().join("n1"), segment.host(1), 1, &section);
    let mut n2 = town.node(&segment, 2, "wdr4300", &town.install(2));
    n1.start();
    n2.start();
    n1.wait_for_peers(&["n2"]);

    succeeds(&n1, &["fleet", "push", &manifest, "--to", "n2"]);
    let why = "0 of the 1 signatures that are needed";
    wait_until("the manifest is refused", || {
        of(&n1, 2).is_some_and(|node| node.why.as_deref() == Some(why))
    });
    assert_fails(&n1.call(&["fleet", "apply"]), 2, &["1 nodes have not staged it: 2"]);
    // Ids far apart make orders long.
    let many: Vec<String> = (1..2000).map(|i| (32 * i).to_string()).collect();
    let pushed = n1.call(&["fleet", "push", &manifest, "--to", &many.join(",")]);
    assert_fails(&pushed, 2, &["1999 nodes", "name fewer nodes by --to"]);
    assert_fails(&n2.call(&["fleet", "push", &manifest]), 10, &[why]);
    // The manifest is all that was sent.
    assert_eq!(n2.log().matches("announced").count(), 1, "{}", n2.log());
}

#[test]
fn a_hook_that_fails_stops_the_roll_out() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    let town = Town::new(dir.path());
    let manifest = town.release("1.1", true);
    let leads = format!("{}\n{}", town.install(1), town.leads());
    let mut n1 = town.node(&segment, 1, "cpe210", &leads);
    let mut n2 = town.node(&segment, 2, "cpe210", "apply = [\"sh\", \"-c\", \"exit 4\"]");
    let stage = format!("{}\nstage = [\"sh\", \"-c\", \"exit 3\"]", town.install(3));
    let mut n3 = town.node(&segment, 3, "cpe210", &stage);
    [&mut n1, &mut n2, &mut n3].into_iter().for_each(Node::start);
    n1.wait_for_peers(&["n2", "n3"]);

    let pushed = n1.call(&["fleet", "push", &manifest, "--wait"]);
    assert_fails(&pushed, 7, &["2 of 3 nodes have staged the release"]);
    let refused = of(&n1, 3).unwrap();
    assert_eq!(refused.standing.as_deref(), Some("refused"));
    assert_eq!(refused.why.as_deref(), Some("the hook refused with exit code 3"));

    let applied = n1.call(&["fleet", "apply", "--without-missing", "--batch", "1", "--wait"]);
    assert_fails(&applied, 7, &["stopped: node 2: failed, the hook refused with exit code 4"]);
    assert_eq!(town.version(1), "1.0");
    assert_fails(&n1.call(&["fleet", "confirm"]), 2, &["no node is on trial"]);
}

#[test]
fn a_node_that_comes_up_when_the_operator_has_gone_stages_from_a_holder() {
    let Some(segment) = Segment::new(4) else { return };
    let dir = tempfile::tempdir().unwrap();
    let town = Town::new(dir.path());
    let manifest = town.release("1.1", true);
    let section = format!("[fleet]\n{}\n", town.leads());
    let mut n1 = Node::new(&dir.path().join("n1"), segment.host(1), 1, &section);
    let mut n2 = town.node(&segment, 2, "wdr4300", &town.install(2));
    let mut n3 = town.node(&segment, 3, "wdr4300", &town.install(3));
    // This one takes part in no roll-outs.
    let mut n4 = Node::new(&dir.path().join("n4"), segment.host(4), 4, INBOX);
    [&mut n1, &mut n2, &mut n4].into_iter().for_each(Node::start);
    n1.wait_for_peers(&["n2", "n4"]);
    let pushed = n1.call(&["fleet", "push", &manifest, "--wait"]);
    assert!(pushed.status.success(), "{pushed:?}");
    assert_eq!(of(&n1, 4).unwrap().standing.as_deref(), Some("has_no_fleet"));

    n1.kill();
    wait_until("the operator is given up", || {
        let peers: Vec<Peer> = n2.ask(&["peers"]);
        peers.iter().all(|peer| peer.id != 1 || peer.values.etx.is_none())
    });
    n3.start();
    wait_until("the late node has staged the release", || {
        let status: FleetStatus = n3.ask(&["fleet", "status"]);
        status.member.is_some_and(|member| member.standing.as_deref() == Some("staged"))
    });
    assert_eq!(town.version(3), "1.0");
    assert!(n2.log().contains("to nodes 3"), "{}", n2.log());

    // The operator comes back, sends nothing twice, and updates both.
    n1.start();
    wait_for(&n1, &[2, 3], "staged");
    succeeds(&n1, &["fleet", "apply", "--batch", "100%", "--at", "+1s", "--wait"]);
    assert_eq!((town.version(2).as_str(), town.version(3).as_str()), ("1.1", "1.1"));

    // Programs see each step, also those before the restart.
    let events = String::from_utf8(n1.call(&["fleet", "events"]).stdout).unwrap();
    let events: Vec<FleetEvent> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let states = |node: Option<u16>| -> Vec<&str> {
        events.iter().filter(|event| event.node == node).map(|event| &*event.state).collect()
    };
    assert_eq!(states(None), ["pushing", "pushed", "scheduled", "applying", "done"]);
    assert_eq!(states(Some(4)), ["has_no_fleet"]);
    assert_eq!(states(Some(3)).last(), Some(&"kept"));
    assert!(!n1.log().contains("to nodes 3"), "{}", n1.log());
}
