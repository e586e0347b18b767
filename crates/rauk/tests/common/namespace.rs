//! A network of the test's own: for each node a network namespace with one link to a bridge, which lies in a namespace too. Taking a link down makes packets vanish; nobody hears of it, and connections stay.
//!
//! Needs root and iproute2. What it makes has names with the test's process in them, and is taken away when it is dropped, also by a panic. Nothing is added to the machine's own network.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

pub struct Network {
    /// Of the bridge.
    hub: String,
    /// Of each node.
    pub spaces: Vec<String>,
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .map_err(|e| format!("ip cannot be started ({e}): install iproute2"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

impl Network {
    /// `Err`: why this machine does not permit it.
    pub fn new(nodes: usize) -> Result<Network, String> {
        let name = format!("rauk{}", std::process::id());
        let mut network = Network { hub: format!("{name}-hub"), spaces: Vec::new() };
        let hub = network.hub.clone();
        // Whatever was made before one fails is taken away with `network`.
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link add bridge type bridge"))?;
        ip(&format!("-n {hub} link set bridge up"))?;
        for number in 1..=nodes {
            let space = format!("{name}-{number}");
            ip(&format!("netns add {space}"))?;
            network.spaces.push(space.clone());
            ip(&format!("-n {hub} link add port{number} type veth peer name eth0 netns {space}"))?;
            ip(&format!("-n {hub} link set port{number} master bridge up"))?;
            ip(&format!("-n {space} address add {}/24 dev eth0", address(number)))?;
            ip(&format!("-n {space} link set lo up"))?;
            ip(&format!("-n {space} link set eth0 up"))?;
        }
        Ok(network)
    }

    /// Takes a node's link down or up; nodes count from 1.
    pub fn set_cut(&self, number: usize, is_cut: bool) {
        let state = if is_cut { "down" } else { "up" };
        ip(&format!("-n {} link set port{number} {state}", self.hub)).expect("the link is ours");
    }
}

/// Of a node, counted from 1. No route leads there from outside, so any private network will do.
pub fn address(number: usize) -> String {
    format!("10.77.0.{number}")
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in self.spaces.iter().chain([&self.hub]) {
            let _ = ip(&format!("netns del {space}"));
        }
    }
}

/// The command, to be run in a namespace.
pub fn command(space: &str, inner: &Command) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", space]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Runs something in a namespace, on a thread that ends with it: sockets that it opens stay there.
pub fn within<T: Send>(space: &str, what: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{space}")).expect("the namespace is there");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the descriptor is open; only this thread changes its namespace, and it ends here.
            let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "{}", std::io::Error::last_os_error());
            what()
        });
        thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}
