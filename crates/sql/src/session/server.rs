//! What functions ask of the server: LOAD_FILE and ROLES_GRAPHML, with the rights of the session's account, and SYSDATE.

use super::engine::Engine;
use super::files::{allowed_file, load};
use super::users::{AccountRecord, Privileges, roles_graph};
use crate::expr::context::Server;
use std::sync::Arc;

pub(super) struct SessionServer {
    engine: Arc<Engine>,
    /// With its active roles.
    account: Arc<AccountRecord>,
}

impl SessionServer {
    pub fn new(engine: Arc<Engine>, account: Arc<AccountRecord>) -> SessionServer {
        SessionServer { engine, account }
    }
}

impl Server for SessionServer {
    fn read_file(&self, name: &str, most: usize) -> Option<Vec<u8>> {
        if !self.account.global.contains(Privileges::FILE) {
            return None;
        }
        load(&allowed_file(&self.engine, name).ok()?, most)
    }

    fn roles_graph(&self) -> String {
        if !self.account.global.intersects(Privileges::ROLE_ADMIN.with(Privileges::SUPER)) {
            return roles_graph(&[]);
        }
        roles_graph(&self.engine.users.all())
    }

    fn clock_micros(&self) -> Option<i64> {
        Some(self.engine.now_micros())
    }
}
