//! The service behind a transporter: one session a link; a frame is executed by the thread that has read it.

use super::Service;
use rauk_transporter::{Handler, Link};
use rauk_wire::Frame;
use std::sync::Arc;

pub struct Server {
    _service: Arc<Service>,
}

impl Server {
    pub fn new(service: Arc<Service>) -> Arc<Server> {
        Arc::new(Server { _service: service })
    }
}

impl Handler for Server {
    fn on_open(&self, _link: &Arc<Link>) {
        todo!()
    }

    fn on_frame(&self, _link: &Arc<Link>, _frame: Frame) {
        todo!()
    }

    fn on_close(&self, _link: &Arc<Link>, _reason: &rauk_transporter::CloseReason) {
        todo!()
    }
}
