//! Connection state and everything that is not a query plan.
use rauk_node::Database;
use rauk_types::MysqlError;
use rauk_types::Value;
use rauk_types::result::{ResultColumn, ResultSink, ServerStatus};
use std::sync::Arc;

/// What all sessions share: the database, global variables, plan cache, users, process list, status counters.
pub struct Engine {
    pub database: Database,
}

/// One connection. Dropping it rolls back what is open.
pub struct Session {
    pub engine: Arc<Engine>,
}

/// What a client gets for COM_STMT_PREPARE.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: u32,
    pub parameters: Vec<ResultColumn>,
    pub columns: Vec<ResultColumn>,
    pub warnings: u16,
}

#[allow(unused_variables)]
impl Session {
    /// Runs one or several statements (several only when the client allowed it); each writes its result into `sink`. The first error ends it.
    /// When this returns, all that was answered is durable.
    pub async fn query(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        todo!()
    }
    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared, MysqlError> {
        todo!()
    }
    /// Parameters as decoded from the binary protocol: integers, doubles, strings, bytes, temporal values, NULL.
    pub async fn execute(
        &mut self,
        id: u32,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        todo!()
    }
    pub fn close_statement(&mut self, id: u32) {
        todo!()
    }
    pub async fn init_db(&mut self, name: &str) -> Result<(), MysqlError> {
        todo!()
    }
    /// COM_RESET_CONNECTION: rolls back, forgets variables, prepared statements and warnings.
    pub async fn reset(&mut self) {
        todo!()
    }
    pub fn status(&self) -> ServerStatus {
        todo!()
    }
}
