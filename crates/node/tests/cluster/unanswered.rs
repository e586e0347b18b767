//! The manage group has no majority: what may be carried out later is said to be unknown, and is carried out when the majority is back.

use super::*;
use rauk_manage::group::GroupCommand;
use rauk_types::{ErrorClass, MysqlError};

fn is_unknown<T: std::fmt::Debug>(result: Result<T, NodeError>) {
    let error = result.unwrap_err();
    assert_eq!(error.class(), ErrorClass::UnknownOutcome, "{error}");
    assert_eq!(MysqlError::from(error).code, 1180);
}

#[test]
fn commands_without_an_answer_have_an_unknown_outcome() {
    let (world, mut nodes) = three(2);
    let gone = nodes.pop().unwrap();
    let forgotten = gone.id;
    let down = GroupCommand::Down { member: gone.db.member().unwrap().me() };
    gone.kill();
    world.propose(down);
    let db = nodes[0].db.clone();
    // All partitions are whole without it, so that it may be forgotten.
    world.wait("two are in-sync", |group| {
        group.replication_groups.iter().all(|p| p.primary.is_some() && p.in_sync.iter().all(|m| m.node != forgotten))
    });
    world.lose_majority();
    block_on(async {
        is_unknown(db.set_replace_after(77).await);
        is_unknown(db.forget_node(forgotten).await);
        is_unknown(db.create_database("later", Collation::DEFAULT).await);
        is_unknown(db.create_table(pairs("later")).await);
    });
    assert_ne!(world.group().config.as_ref().unwrap().replace_after, 77);
    world.regain_majority();
    let group = world.group();
    assert_eq!(group.config.as_ref().unwrap().replace_after, 77);
    assert!(!group.nodes.contains_key(&forgotten));
    nodes.into_iter().for_each(world::Node::kill);
}
