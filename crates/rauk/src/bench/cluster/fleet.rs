//! Clusters that are loaded and used at the same moments and counted together: the one whose cost is measured, or those of its control.
//!
//! Several clusters know nothing of each other. Their terminals work side by side, and the processor time, the messages and the transactions of all are added up; the books of each are checked by themselves.

use super::arguments::Options;
use super::nodes::{Cluster, Plan, Traffic};
use super::scale::Placement;
use crate::bench::servers::connect;
use crate::bench::warehouses::{self, Done, Shape, Terminal};
use std::path::Path;
use std::time::{Duration, Instant};

const HEALTHY: Duration = Duration::from_secs(60);
/// Seconds for which nodes are watched with nobody connected, at most.
const IDLE: u64 = 3;

/// Warehouses, and threads that work on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub warehouses: u32,
    pub threads: usize,
}

impl Load {
    /// Of one cluster of so many data nodes.
    pub fn of(options: &Options, nodes: usize) -> Load {
        let (warehouses, threads) = (options.warehouses, options.threads);
        match options.grows {
            true => {
                Load {
                    // Two at least, for transactions that touch a second one.
                    warehouses: (warehouses * nodes as u32).div_ceil(2).max(2),
                    threads: (threads * nodes).div_ceil(2),
                }
            }
            false => Load { warehouses, threads },
        }
    }

    /// Shared out to so many clusters, of which each has something to do.
    fn shared(self, clusters: usize) -> Vec<Load> {
        let share = |all: usize, at: usize| all / clusters + usize::from(at < all % clusters);
        let one = |at| Load {
            warehouses: share(self.warehouses as usize, at).max(2) as u32,
            threads: share(self.threads, at).max(1),
        };
        (0..clusters).map(one).collect()
    }
}

/// A cluster, and what terminals have done in it.
struct Tenant {
    cluster: Cluster,
    connection: mysql::Conn,
    load: Load,
    /// Number of the next row of history of each warehouse.
    history: Vec<u64>,
    done: Done,
}

pub struct Fleet {
    tenants: Vec<Tenant>,
}

/// What the nodes spend with nobody connected: processor seconds and messages a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    pub cpu: f64,
    pub messages: f64,
}

/// A round's measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Share of terminals connected to the node that leads their warehouse, 0 to 1.
    pub local: f64,
    pub done: Done,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub traffic: Traffic,
}

impl Fleet {
    /// Starts so many clusters of one plan and loads them with equal shares.
    pub fn start(root: &Path, plan: &Plan, clusters: usize, load: Load) -> Result<Fleet, String> {
        let mut tenants = Vec::new();
        for (at, load) in load.shared(clusters).into_iter().enumerate() {
            let cluster = Cluster::start(&root.join(format!("cluster{}", at + 1)), plan.clone())?;
            let connection = connect(cluster.sql_ports()[0])?;
            let history = vec![1; load.warehouses as usize];
            tenants.push(Tenant { cluster, connection, load, history, done: Done::default() });
        }
        for tenant in &mut tenants {
            warehouses::load(&mut tenant.connection, tenant.load.warehouses, Shape::Partitioned)?;
        }
        for tenant in &tenants {
            tenant.cluster.wait_healthy(HEALTHY)?;
        }
        Ok(Fleet { tenants })
    }

    fn cpu_seconds(&self) -> Result<f64, String> {
        self.tenants.iter().map(|t| t.cluster.cpu_seconds()).sum()
    }

    fn traffic(&self) -> Result<Traffic, String> {
        let mut sum = Traffic::default();
        for tenant in &self.tenants {
            let one = tenant.cluster.traffic()?;
            sum.messages += one.messages;
            sum.bytes += one.bytes;
        }
        Ok(sum)
    }

    pub fn idle(&self, options: &Options) -> Result<Idle, String> {
        let time = Duration::from_secs(options.seconds.min(IDLE));
        let (cpu, traffic) = (self.cpu_seconds()?, self.traffic()?);
        std::thread::sleep(time);
        let cpu = (self.cpu_seconds()? - cpu) / time.as_secs_f64();
        Ok(Idle { cpu, messages: self.traffic()?.since(traffic).messages / time.as_secs_f64() })
    }

    /// A terminal for each warehouse, shared out to the threads of its cluster.
    pub fn round(&mut self, placement: Placement, options: &Options) -> Result<Round, String> {
        let (mut near, mut all) = (0, 0);
        let mut shares: Vec<Vec<Vec<Terminal>>> = Vec::new();
        for tenant in &mut self.tenants {
            let homes = tenant.homes()?;
            let chosen: Vec<u16> = match placement {
                Placement::Near => homes.clone(),
                Placement::Spread => tenant.cluster.sql_ports().iter().copied().cycle().take(homes.len()).collect(),
            };
            near += homes.iter().zip(&chosen).filter(|(home, port)| home == port).count();
            all += homes.len();
            shares.push(tenant.terminals(&chosen, options.remote)?);
        }
        let (cpu, traffic) = (self.cpu_seconds()?, self.traffic()?);
        let duration = Duration::from_secs(options.seconds);
        let began = Instant::now();
        std::thread::scope(|scope| -> Result<(), String> {
            let all = shares.iter_mut().flatten();
            let threads: Vec<_> = all.map(|share| scope.spawn(move || warehouses::work(share, duration))).collect();
            let results: Vec<_> = threads.into_iter().map(|t| t.join().expect("a terminal does not panic")).collect();
            results.into_iter().collect()
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let cpu_seconds = self.cpu_seconds()? - cpu;
        let traffic = self.traffic()?.since(traffic);
        let mut done = Done::default();
        for (tenant, shares) in self.tenants.iter_mut().zip(&shares) {
            done.add(tenant.note(shares));
        }
        Ok(Round { local: near as f64 / all as f64, done, seconds, cpu_seconds, traffic })
    }

    /// Whether what was acknowledged is there, at every node.
    pub fn check(&self) -> Result<(), String> {
        for tenant in &self.tenants {
            for port in tenant.cluster.sql_ports() {
                warehouses::check(&mut connect(port)?, &tenant.done)?;
            }
        }
        Ok(())
    }
}

impl Tenant {
    /// SQL port of the node that leads each warehouse.
    fn homes(&mut self) -> Result<Vec<u16>, String> {
        let primaries = self.cluster.primaries()?;
        let mut home = |warehouse| -> Result<u16, String> {
            let partition = warehouses::partition(&mut self.connection, warehouse)?;
            primaries.get(partition).copied().ok_or_else(|| format!("there is no partition {partition}"))
        };
        (1..=self.load.warehouses).map(&mut home).collect()
    }

    /// One for each warehouse, at these ports; by threads.
    fn terminals(&self, ports: &[u16], remote: u32) -> Result<Vec<Vec<Terminal>>, String> {
        let Load { warehouses, threads } = self.load;
        let mut shares: Vec<Vec<Terminal>> = (0..threads).map(|_| Vec::new()).collect();
        for (at, port) in ports.iter().enumerate() {
            let terminal = Terminal::new(connect(*port)?, at as u32 + 1, warehouses, remote, self.history[at])?;
            shares[at % threads].push(terminal);
        }
        Ok(shares)
    }

    /// What these terminals have done.
    fn note(&mut self, shares: &[Vec<Terminal>]) -> Done {
        let mut done = Done::default();
        for (at, share) in shares.iter().enumerate() {
            for (turn, terminal) in share.iter().enumerate() {
                done.add(terminal.done);
                self.history[at + turn * self.load.threads] = terminal.next_history;
            }
        }
        self.done.add(done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_load_is_what_one_cluster_of_its_size_would_have() {
        let all = Load { warehouses: 64, threads: 32 };
        assert_eq!(all.shared(1), [all]);
        assert_eq!(all.shared(4), [Load { warehouses: 16, threads: 8 }; 4]);
        let uneven = Load { warehouses: 9, threads: 6 }.shared(4);
        assert_eq!(uneven.iter().map(|l| l.warehouses).collect::<Vec<_>>(), [3, 2, 2, 2]);
        assert_eq!(uneven.iter().map(|l| l.threads).collect::<Vec<_>>(), [2, 2, 1, 1]);
        // Nobody is left out, and nobody is without a second warehouse.
        assert_eq!(Load { warehouses: 2, threads: 1 }.shared(2), [Load { warehouses: 2, threads: 1 }; 2]);
    }
}
