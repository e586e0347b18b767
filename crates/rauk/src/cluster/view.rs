//! The cluster as one node knows it, as JSON: for `/cluster`, and for `rauk cluster status`, which reads it there.
//!
//! It is the group's state as applied here, with what this node's own replicas and links do. Other nodes are not asked, so it is there on every node at any time, also when nothing else works.

use super::member::Member;
use super::settings::role_name;
use rauk_manage::consensus::Consensus;
use rauk_manage::group::{Colour, Life};
use rauk_node::member::report::Wanted;
use serde_json::{Value, json};

pub fn life_name(life: Life) -> &'static str {
    match life {
        Life::Absent => "absent",
        Life::Up => "up",
        Life::Down => "down",
    }
}

pub fn of(member: &Member) -> Value {
    let group = member.raft.group();
    let (config, health) = (group.config.as_ref(), group.health());
    let (colour, reasons) = member.database.health();
    let report = member.database.report(Wanted::Partitions);
    let leader = member.raft.leader().map(|node| node.0);
    let nodes = group.nodes.iter().map(|(id, state)| {
        let roles: Vec<&str> = state.roles.iter().map(|r| role_name(*r)).collect();
        let (led, held) = member.database.load_of(*id);
        json!({
            "node": id.0, "life": life_name(state.life), "process": state.process.0, "roles": roles,
            "address": state.address, "sql_address": state.sql_address, "native_address": state.native_address,
            "leads_manage_group": leader == Some(id.0), "primaries": led, "replicas": held,
        })
    });
    let layout = config.map(|config| config.layout());
    let partitions = layout.iter().flat_map(|layout| layout.partitions().map(move |number| (number, layout)));
    let partitions = partitions.filter_map(|(number, layout)| {
        let id = layout.group_of(number);
        let (state, health) = (group.replication_group(id)?, health.groups.get(usize::from(id.0))?);
        let own = report.partitions.get(usize::from(number));
        Some(json!({
            "partition": number, "group": id.0, "view": state.view.0, "primary": state.primary.map(|m| m.node.0),
            "in_sync": state.in_sync.iter().map(|m| m.node.0).collect::<Vec<_>>(),
            "placed": state.placed.iter().map(|n| n.0).collect::<Vec<_>>(),
            "wanted": health.wanted, "joining": health.joining, "health": health.colour.to_string(),
            "here": own.map(|p| json!({
                "role": p.role.name(), "serves": p.serves, "last": p.last, "stable": p.stable, "whole": p.whole,
            })),
        }))
    });
    let links = member.links.statistics().into_iter().map(|link| {
        json!({
            "address": link.address, "connected": link.connected, "links_made": link.links_made,
            "dropped": link.dropped, "unsent_bytes": link.unsent_bytes, "error": link.error,
        })
    });
    json!({
        "cluster": member.name, "node": member.node.0, "leader": leader, "index": group.index,
        "replicas": config.map(|c| c.replicas), "replace_after": config.map(|c| c.replace_after),
        "memory_return": config.map(|c| c.memory_return),
        "health": colour.to_string(), "reasons": reasons, "lease": report.lease,
        // Everything is where it is to be, whatever one more failure would stop or memory lacks.
        "settled": health.colour == Colour::Green && colour != Colour::Red,
        "nodes": nodes.collect::<Vec<_>>(), "partitions": partitions.collect::<Vec<_>>(), "links": links.collect::<Vec<_>>(),
    })
}
