//! ROLES_GRAPHML: accounts and the roles granted to them, as a document that graph programs read.
//!
//! A node for each account that has a role or is one that was granted, an edge from the account to the role; its colour
//! is 1 WITH ADMIN OPTION. The form is that of MySQL's document.

use super::record::{AccountRecord, quoted_name};
use crate::parse::statement::UserName;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
  <key id="key0" for="edge" attr.name="color" attr.type="int" />
  <key id="key1" for="node" attr.name="name" attr.type="string" />
  <graph id="G" edgedefault="directed" parse.nodeids="canonical" parse.edgeids="canonical" parse.order="nodesfirst">
"#;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Without accounts the graph is empty.
pub fn roles_graph(accounts: &[Arc<AccountRecord>]) -> String {
    if accounts.is_empty() {
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml />\n".to_string();
    }
    let edges: Vec<(UserName, &UserName, bool)> = accounts
        .iter()
        .flat_map(|account| account.roles.iter().map(|(role, admin)| (account.name(), role, *admin)))
        .collect();
    let names = edges.iter().flat_map(|(account, role, _)| [account, *role]).map(quoted_name);
    let mut numbers: BTreeMap<String, usize> = names.map(|name| (name, 0)).collect();
    numbers.values_mut().enumerate().for_each(|(at, number)| *number = at);
    let mut out = HEAD.to_string();
    for (name, number) in &numbers {
        let name = escaped(name);
        _ = write!(out, "    <node id=\"n{number}\">\n      <data key=\"key1\">{name}</data>\n    </node>\n");
    }
    for (at, (account, role, admin)) in edges.iter().enumerate() {
        let (from, to) = (numbers[&quoted_name(account)], numbers[&quoted_name(role)]);
        let color = u8::from(*admin);
        _ = write!(
            out,
            "    <edge id=\"e{at}\" source=\"n{from}\" target=\"n{to}\">\n      <data key=\"key0\">{color}</data>\n    </edge>\n"
        );
    }
    out.push_str("  </graph>\n</graphml>\n");
    out
}
