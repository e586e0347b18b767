//! The service behind a transporter: one session a link; a frame is executed by the thread that has read it.
//!
//! What can be answered at once is; the rest becomes a task of the link, which is dropped (and rolls back what it was at) when the link closes. A peer that sends what no
//! client sends is cut off.

use super::rights::Rights;
use super::{Reply, Request, Service, Session};
use rauk_transporter::{CloseReason, Handler, Link, Urgency};
use rauk_wire::{Frame, Header, Kind};
use std::sync::Arc;
use std::time::Duration;

pub struct Server {
    service: Arc<Service>,
}

impl Server {
    pub fn new(service: Arc<Service>) -> Arc<Server> {
        Arc::new(Server { service })
    }

    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }
}

fn session_of(link: &Link) -> Option<&Arc<Session>> {
    link.data()?.downcast_ref::<Arc<Session>>()
}

/// Sends an answer. A request with number 0 wants none.
fn answer(service: &Service, link: &Link, request: u64, transaction: u64, reply: Reply) {
    let fatal = reply.fatal;
    if request != 0 {
        let header = Header {
            cluster: service.cluster(),
            incarnation: service.incarnation(),
            placement: service.placement_version(),
            schema: service.schema_version(),
            transaction,
            timestamp: reply.timestamp,
            ..Header::new(reply.kind, request)
        };
        let urgency = if fatal { Urgency::Force } else { Urgency::Adaptive };
        if link.send(&header, reply.frame, urgency).is_err() {
            // It cannot be told, and so must not go on as if it had been.
            link.close(CloseReason::Protocol("an answer could not be sent: the peer does not read".into()));
        }
    }
    if fatal {
        link.flush();
        link.close(CloseReason::Protocol("a malformed request".into()));
    }
}

impl Handler for Server {
    fn on_open(&self, link: &Arc<Link>) {
        let rights = match link.granted() {
            None => None,
            Some(granted) => match granted.downcast_ref::<Arc<dyn Rights>>() {
                Some(rights) => Some(rights.clone()),
                // An account must never become a session that may do everything.
                None => {
                    return link.close(CloseReason::Protocol("the account has no rights that are known here".into()));
                }
            },
        };
        link.set_data(Arc::new(self.service.session_of(rights)));
    }

    fn on_frame(&self, link: &Arc<Link>, frame: Frame) {
        let Some(session) = session_of(link) else { return };
        let header = frame.header;
        match header.kind {
            Kind::Batch
            | Kind::Scan
            | Kind::ScanNext
            | Kind::ScanClose
            | Kind::Rollback
            | Kind::AskPlacement
            | Kind::OpenTable
            | Kind::CreateTable
            | Kind::DropTable
            | Kind::CreateDatabase => {}
            Kind::Ping => {
                let mut pong = link.buffer();
                pong.extend_from_slice(&frame.payload);
                let reply = Reply { kind: Kind::Pong, timestamp: 0, frame: pong, fatal: false };
                return answer(&self.service, link, header.request, 0, reply);
            }
            Kind::Cancel => {
                match rauk_wire::scan::decode_number(&frame.payload) {
                    Ok(number) => session.cancel(number),
                    Err(error) => link.close(CloseReason::Wire(error)),
                }
                return;
            }
            // The peer will close; what it had asked for may still be answered.
            Kind::Goodbye | Kind::Pong => return,
            kind => return link.close(CloseReason::Protocol(format!("{kind:?} is no request"))),
        }
        let request = Request {
            kind: header.kind,
            number: header.request,
            transaction: header.transaction,
            timestamp: header.timestamp,
            deadline: (header.deadline_us != 0).then(|| Duration::from_micros(header.deadline_us.into())),
            payload: frame.payload,
        };
        let buffer = match session.try_call(&request, link.buffer()) {
            Ok(reply) => return answer(&self.service, link, header.request, header.transaction, reply),
            Err(buffer) => buffer,
        };
        let (session, service, to) = (session.clone(), self.service.clone(), link.clone());
        link.spawn(async move {
            let reply = session.call(request, buffer).await;
            if to.writable().await.is_ok() {
                answer(&service, &to, header.request, header.transaction, reply);
            }
        });
    }

    fn on_close(&self, link: &Arc<Link>, reason: &CloseReason) {
        tracing::debug!(peer = %link.peer(), %reason, "a native connection has ended");
        if let Some(session) = session_of(link) {
            session.close();
        }
    }
}
